import { useEffect, useState } from 'preact/hooks';
import { sentenceOf } from '../api/api-client.ts';
import { may } from '../api/caller.ts';
import { SERVICE_URL } from '../api/service-url.ts';
import { CopyBlock } from '../shell/copy-block.tsx';
import { Link } from '../shell/link.tsx';
import { moment } from '../shell/moment.ts';
import { sessionPath } from '../shell/router.ts';
import { Empty, Failure, Loading } from '../shell/states.tsx';
import { Time } from '../shell/time.tsx';
import { isOwn, type Handoff } from './handoff.ts';
import { HeldScreen, take, type Taken } from './held-screen.tsx';
import { inbox, readInbox, readPending } from './inbox.ts';
import { askPermission, permission } from './notify.ts';
import { TimeLeft } from './time-left.tsx';
import './handoffs.css';

/** What waits for a person, and who has what was taken. */
export function HandoffsPage() {
  const { handoffs, failure } = inbox.value;
  const [taken, setTaken] = useState<Taken | null>(null);
  const [refusal, setRefusal] = useState<string | null>(null);
  const [isBusy, setBusy] = useState(false);
  useEffect(readPending, []);
  const listed = handoffs?.filter(({ id }) => id !== taken?.id) ?? [];
  async function takeIt(handoff: Handoff) {
    setBusy(true);
    try {
      setTaken(await take(handoff));
      setRefusal(null);
    } catch (error) {
      setRefusal(sentenceOf(error));
    }
    setBusy(false);
    void readInbox();
  }
  return (
    <div class="page">
      <div class="title">
        <h1>Hand-offs</h1>
        <p class="muted">Automation asks a person for help here.</p>
        {permission.value === 'default' && (
          <button type="button" onClick={() => void askPermission()}>
            Notify me of new ones
          </button>
        )}
      </div>
      {moment.value !== null && (
        <p class="notice warn">This page shows the hand-offs of now, not of the moment chosen.</p>
      )}
      <Failure what="It was not taken" failure={refusal} />
      <Failure
        what="The hand-offs could not be read"
        failure={failure}
        retry={() => void readInbox()}
      />
      {taken !== null && <HeldScreen key={taken.id} taken={taken} close={() => setTaken(null)} />}
      {handoffs === null && failure === null && <Loading what="the hand-offs" />}
      {handoffs?.length === 0 && taken === null && <Teach />}
      {listed.length > 0 && (
        <ul class="handoffs">
          {listed.map((handoff) => (
            <Item
              key={handoff.id}
              handoff={handoff}
              isBusy={isBusy}
              takeIt={() => void takeIt(handoff)}
            />
          ))}
        </ul>
      )}
    </div>
  );
}

type ItemProps = { handoff: Handoff; isBusy: boolean; takeIt: () => void };

function Item({ handoff, isBusy, takeIt }: ItemProps) {
  const isWaiting = handoff.status === 'requested';
  return (
    <li class="card">
      <div>
        <p class="instructions">{handoff.instructions}</p>
        <p class="muted">
          {stateOf(handoff)} <TimeLeft until={handoff.expires_at} /> left. Asked by{' '}
          {handoff.requested_by}, <Time at={handoff.requested_at} />.{' '}
          <Link to={sessionPath(handoff.session_id)}>Its session</Link>
        </p>
      </div>
      {may('member') && (isWaiting || isOwn(handoff)) && (
        <button type="button" class="primary" disabled={isBusy} onClick={takeIt}>
          {isWaiting ? 'Take' : 'Open'}
        </button>
      )}
    </li>
  );
}

function stateOf(handoff: Handoff): string {
  if (handoff.status === 'requested') return 'Waits for a person.';
  if (isOwn(handoff)) return 'You have it.';
  return `Taken by ${handoff.taken_by ?? 'a person'}.`;
}

function Teach() {
  const client = [
    'const { status, note } = await session.handoff({',
    "  instructions: 'Please sign in to the shop, then give the browser back.',",
    "  timeout: '10m',",
    '});',
  ].join('\n');
  const curl = [
    `curl -X POST ${SERVICE_URL}/api/sessions/$SESSION_ID/handoffs \\`,
    '  -H "Authorization: Bearer $API_KEY" \\',
    `  -H 'Content-Type: application/json' \\`,
    `  -d '{"instructions": "Please sign in to the shop.", "timeout": "10m"}'`,
  ].join('\n');
  return (
    <Empty title="Nothing waits for a person">
      <p class="muted">
        When automation meets what only a person can do, it asks. The request appears here by
        itself; who takes it has the browser alone until it is given back.
      </p>
      <CopyBlock title="With the client" text={client} />
      <CopyBlock title="With curl" text={curl} />
    </Empty>
  );
}
