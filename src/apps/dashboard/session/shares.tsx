import { useState } from 'preact/hooks';
import { post, remove, sentenceOf } from '../api/api-client.ts';
import { may } from '../api/caller.ts';
import { Confirm } from '../shell/confirm.tsx';
import { CopyBlock } from '../shell/copy-block.tsx';
import { fieldOf } from '../shell/form-field.ts';
import { Link } from '../shell/link.tsx';
import { Failure } from '../shell/states.tsx';
import { Table, type Column } from '../shell/table.tsx';
import { Time } from '../shell/time.tsx';
import { useResource } from '../api/use-resource.ts';
import type { Details } from './use-session.ts';

type Share = {
  id: string;
  mode: 'view' | 'control';
  expires_at: string;
  created_at: string;
  created_by: string;
  last_used_at: string | null;
};
type Created = { id: string; url: string; mode: Share['mode']; expires_at: string };

const AGAIN_MS = 10_000;
const MODES = { view: 'watching', control: 'watching and steering' } as const;

/** Addresses of the session's screen for people without a key. They are read while it is open. */
export function Shares({ session }: { session: Details }) {
  const [isOpen, setOpen] = useState(false);
  return (
    <details class="drive" onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>Share its screen</summary>
      {isOpen && (
        <div class="shares">
          <p class="muted">
            An address opens the screen without a key until it expires, its session ends, or you
            revoke it. {may('admin') && <Link to="/keys#origins">Which pages may embed it</Link>}
          </p>
          <Addresses session={session} />
        </div>
      )}
    </details>
  );
}

function Addresses({ session }: { session: Details }) {
  const path = `/api/sessions/${encodeURIComponent(session.id)}/shares`;
  // The session is read again at each of its events, and with it the shares; these also expire.
  const { data, failure, reload } = useResource<{ shares: Share[] }>(path, {
    again: session,
    everyMs: AGAIN_MS,
  });
  const [created, setCreated] = useState<Created | null>(null);
  const [asking, ask] = useState<Share | null>(null);
  const [refusal, setRefusal] = useState<string | null>(null);
  async function revoke(share: Share) {
    ask(null);
    try {
      await remove(`${path}/${encodeURIComponent(share.id)}`);
      setRefusal(null);
      if (created?.id === share.id) setCreated(null);
    } catch (error) {
      setRefusal(sentenceOf(error));
    }
    reload();
  }
  async function create(event: SubmitEvent) {
    event.preventDefault();
    const form = event.currentTarget as HTMLFormElement;
    const body = { mode: fieldOf(form, 'mode'), expires_in: fieldOf(form, 'expires') };
    try {
      setCreated(await post<Created>(path, body));
      setRefusal(null);
    } catch (error) {
      setRefusal(sentenceOf(error));
    }
    reload();
  }
  return (
    <>
      <CreateForm create={create} />
      {created !== null && (
        <>
          <p class="notice warn" role="status">
            Copy the address now: it is a secret, and it is not shown again.
          </p>
          <CopyBlock title={`Address for ${MODES[created.mode]}`} text={created.url} />
        </>
      )}
      <Failure what="Refused" failure={refusal} />
      <Failure what="The shares could not be read" failure={failure} retry={reload} />
      {data?.shares.length === 0 && <p class="muted">There is no address now.</p>}
      {data !== null && data.shares.length > 0 && (
        <Table label="Shares" columns={columns(ask)} rows={data.shares} keyOf={(one) => one.id} />
      )}
      {asking !== null && (
        <Confirm
          question="Revoke this address?"
          verb="Revoke"
          onAnswer={(isYes) => (isYes ? void revoke(asking) : ask(null))}
        >
          Who has it open is disconnected, and it does not open again. This cannot be undone.
        </Confirm>
      )}
    </>
  );
}

function CreateForm({ create }: { create: (event: SubmitEvent) => Promise<void> }) {
  const [isBusy, setBusy] = useState(false);
  async function submit(event: SubmitEvent) {
    setBusy(true);
    await create(event);
    setBusy(false);
  }
  return (
    <form onSubmit={(event) => void submit(event)}>
      <label>
        For{' '}
        <select name="mode">
          <option value="view">{MODES.view}</option>
          <option value="control">{MODES.control}</option>
        </select>
      </label>
      <label>
        Expires in{' '}
        <select name="expires">
          <option value="15m">15 minutes</option>
          <option value="1h">1 hour</option>
          <option value="24h">24 hours</option>
        </select>
      </label>
      <button type="submit" disabled={isBusy}>
        Make an address
      </button>
    </form>
  );
}

function columns(ask: (share: Share) => void): readonly Column<Share>[] {
  return [
    { name: 'For', cell: ({ mode }) => MODES[mode] },
    { name: 'Expires', cell: ({ expires_at: at }) => <Time at={at} /> },
    { name: 'Made by', cell: ({ created_by: by }) => by },
    {
      name: 'Last opened',
      cell: ({ last_used_at: at }) => (at === null ? 'never' : <Time at={at} />),
    },
    {
      name: 'Action',
      cell: (share) => (
        <button
          type="button"
          class="danger"
          aria-label={`Revoke ${share.id}`}
          onClick={() => ask(share)}
        >
          Revoke
        </button>
      ),
    },
  ];
}
