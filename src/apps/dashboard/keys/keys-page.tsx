import { useState } from 'preact/hooks';
import { post, remove, sentenceOf } from '../api/api-client.ts';
import { caller, type Role } from '../api/caller.ts';
import { Confirm } from '../shell/confirm.tsx';
import { CopyBlock } from '../shell/copy-block.tsx';
import { fieldOf } from '../shell/form-field.ts';
import { moment } from '../shell/moment.ts';
import { Failure, Loading } from '../shell/states.tsx';
import { Table, type Column } from '../shell/table.tsx';
import { Time } from '../shell/time.tsx';
import { useResource } from '../api/use-resource.ts';
import { Origins } from './origins.tsx';
import './keys.css';

type Key = { key_id: string; role: Role; user_id: string; issued_at: string | null };
type Issued = Key & { api_key: string };

const AGAIN_MS = 10_000;
const ROLES: readonly [Role, string][] = [
  ['viewer', 'viewer: sees'],
  ['member', 'member: creates, extends and stops sessions'],
  ['admin', 'admin: also issues and revokes keys'],
  ['owner', 'owner: also owners’ keys'],
];

/** The organization's keys; a new one is shown once. */
export function KeysPage() {
  const { data, failure, reload } = useResource<{ keys: Key[] }>('/api/keys', {
    everyMs: AGAIN_MS,
  });
  const [issued, setIssued] = useState<Issued | null>(null);
  const [asking, ask] = useState<Key | null>(null);
  const [refusal, setRefusal] = useState<string | null>(null);
  async function revoke(key: Key) {
    ask(null);
    try {
      await remove(`/api/keys/${encodeURIComponent(key.key_id)}`);
      setRefusal(null);
      if (issued?.key_id === key.key_id) setIssued(null);
    } catch (error) {
      setRefusal(sentenceOf(error));
    }
    reload();
  }
  return (
    <div class="page">
      <div class="title">
        <h1>Keys</h1>
        <p class="muted">A key lets a program or a person use the API as a user, with a role.</p>
      </div>
      {moment.value !== null && (
        <p class="notice warn">This page shows the keys of now, not of the moment chosen.</p>
      )}
      <IssueForm
        onIssued={(key) => {
          setIssued(key);
          reload();
        }}
      />
      {issued !== null && (
        <Shown key={issued.key_id} issued={issued} hide={() => setIssued(null)} />
      )}
      <Failure what="The key was not revoked" failure={refusal} />
      <Failure what="The keys could not be read" failure={failure} retry={reload} />
      {data === null && failure === null && <Loading what="the keys" />}
      {data !== null && data.keys.length === 0 && <p class="muted">There is no key yet.</p>}
      {data !== null && data.keys.length > 0 && (
        <Table label="Keys" columns={columns(ask)} rows={data.keys} keyOf={(key) => key.key_id} />
      )}
      {(data !== null || failure !== null) && <Origins />}
      {asking !== null && (
        <Confirm
          question={`Revoke the key of ${asking.user_id}?`}
          verb="Revoke"
          onAnswer={(isYes) => (isYes ? void revoke(asking) : ask(null))}
        >
          <code>{asking.key_id}</code>, {asking.role}. What uses it is refused at once, and its
          connections to browsers are closed. This cannot be undone. If this tab uses the key, it is
          signed out.
        </Confirm>
      )}
    </div>
  );
}

function columns(ask: (key: Key) => void): readonly Column<Key>[] {
  return [
    { name: 'User', cell: ({ user_id: user }) => user },
    { name: 'Role', cell: ({ role }) => role },
    { name: 'Issued', cell: ({ issued_at: at }) => <Time at={at} /> },
    { name: 'Id', cell: ({ key_id: id }) => <code>{id}</code> },
    {
      name: 'Action',
      cell: (key) =>
        mayGrant(key.role) ? (
          <button
            type="button"
            class="danger"
            aria-label={`Revoke ${key.key_id}`}
            onClick={() => ask(key)}
          >
            Revoke
          </button>
        ) : (
          <span class="muted">for owners</span>
        ),
    },
  ];
}

/** Only an owner issues and revokes the keys of owners. */
const mayGrant = (role: Role) => role !== 'owner' || caller.value?.organization_role === 'owner';

function IssueForm({ onIssued }: { onIssued: (key: Issued) => void }) {
  const [failure, setFailure] = useState<string | null>(null);
  const [isBusy, setBusy] = useState(false);
  async function submit(event: SubmitEvent) {
    event.preventDefault();
    const form = event.currentTarget as HTMLFormElement;
    const body = { role: fieldOf(form, 'role'), user_id: fieldOf(form, 'user') };
    setBusy(true);
    try {
      onIssued(await post<Issued>('/api/keys', body));
      setFailure(null);
      form.reset();
    } catch (error) {
      setFailure(sentenceOf(error));
    }
    setBusy(false);
  }
  return (
    <form class="card issue" onSubmit={(event) => void submit(event)}>
      <label>
        Name of its user
        <input name="user" required maxLength={256} placeholder="ci" autocomplete="off" />
      </label>
      <label>
        Role
        <select name="role">
          {ROLES.filter(([role]) => mayGrant(role)).map(([role, text]) => (
            <option key={role} value={role}>
              {text}
            </option>
          ))}
        </select>
      </label>
      <button type="submit" class="primary" disabled={isBusy}>
        {isBusy ? 'Issuing…' : 'Issue a key'}
      </button>
      <Failure what="No key was issued" failure={failure} />
    </form>
  );
}

function Shown({ issued, hide }: { issued: Issued; hide: () => void }) {
  return (
    <section class="card" aria-label="The new key">
      <p class="notice warn" role="status">
        Copy the key now: it is not shown again. The service keeps only its hash.
      </p>
      <CopyBlock title={`Key of ${issued.user_id}, ${issued.role}`} text={issued.api_key} />
      <div class="actions">
        <button type="button" onClick={hide}>
          I have copied it
        </button>
      </div>
    </section>
  );
}
