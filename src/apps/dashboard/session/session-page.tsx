import { useEffect, useState } from 'preact/hooks';
import type { PageProps } from '../../../roles/api/dashboard/pages.ts';
import { may } from '../api/caller.ts';
import { SERVICE_URL } from '../api/service-url.ts';
import { Player } from '../recording/player.tsx';
import { CopyBlock } from '../shell/copy-block.tsx';
import { Link } from '../shell/link.tsx';
import { moment, setMoment } from '../shell/moment.ts';
import { Failure, Loading } from '../shell/states.tsx';
import { StatusBadge } from '../sessions/status-badge.tsx';
import { Cost } from './cost.tsx';
import { EgressRules } from './egress.tsx';
import { FactList, factsOfDetails, factsOfState, type Facts } from './facts.tsx';
import { Files } from './files/files.tsx';
import { countAt, timelineOf, type HistoryEvent } from './history.ts';
import { LiveScreen } from './live-screen.tsx';
import { HandoffBanner } from './handoff-banner.tsx';
import { SessionActions } from './session-actions.tsx';
import { Shares } from './shares.tsx';
import { snippetsFor } from './snippets.ts';
import { TimeSlider } from './time-slider.tsx';
import { Timeline } from './timeline.tsx';
import { useSession, type Details } from './use-session.ts';
import { LastPicture } from './last-picture.tsx';
import { WhyLine } from './why-line.tsx';
import './session.css';

/** One session: what it is, why, and all that happened to it; now, or at the moment of `?at=`. */
export function SessionPage({ parameters: { id = '' } }: PageProps) {
  const { details, why, history, readMore } = useSession(id);
  const [open, setOpen] = useState<readonly number[]>([]);
  const at = moment.value;
  const count = countAt(history.events, at);
  const events = count === null ? history.events : history.events.slice(0, count);
  const facts = factsAt(details.data, events, count);
  const session = details.data;
  useEffect(() => {
    document.title = `${session?.session_name ?? id} – Browser Session Service`;
  }, [session?.session_name]);
  const isThere = session !== null || history.events.length > 0;
  return (
    <div class="page session">
      <p>
        <Link to="/">← Sessions</Link>
      </p>
      <Failure
        what="The session could not be read"
        failure={details.failure}
        retry={details.reload}
      />
      <Failure what="Its history could not be read" failure={isThere ? history.failure : null} />
      {!isThere && details.failure === null && <Loading what="the session" />}
      {facts !== null && <Head facts={facts} isNow={count === null} />}
      {session !== null && count === null && (
        <HandoffBanner key={session.handoff?.id} handoff={session.handoff} />
      )}
      {at !== null && facts === null && isThere && (
        <p class="notice warn">
          The session did not exist at this moment.
          <button type="button" onClick={() => setMoment(null)}>
            Back to now
          </button>
        </p>
      )}
      {isThere && (
        <WhyLine why={why} until={count === null ? null : events} status={facts?.status} />
      )}
      {count === null && why.data?.black_box?.thumbnail === true && <LastPicture id={id} />}
      {history.events.length > 0 && <TimeSlider events={history.events} count={count} />}
      {facts !== null && <FactList facts={facts} />}
      {session?.egress != null && count === null && <EgressRules egress={session.egress} />}
      {session !== null && count === null && <Live session={session} />}
      {session?.record === true && <Recording id={session.id} />}
      {session !== null && count === null && <Files session={session} events={history.events} />}
      <div class="columns">
        {history.events.length > 0 && (
          <Timeline
            lines={timelineOf(history.events, why.data)}
            last={count === null ? null : (events.at(-1)?.sequence ?? 0)}
            open={open}
            setOpen={setOpen}
          />
        )}
        {events.length > 0 && (
          <Cost events={events} open={(sequence) => setOpen([...open, sequence])} />
        )}
      </div>
      {isThere && !history.isWhole && history.failure === null && (
        <button type="button" onClick={readMore}>
          Read the events after {history.events.at(-1)?.sequence ?? 0}
        </button>
      )}
    </div>
  );
}

/** At a moment the state after its last event; null: the session did not exist then. */
function factsAt(
  session: Details | null,
  events: readonly HistoryEvent[],
  count: number | null,
): Facts | null {
  const state = events.at(-1)?.state;
  if (count !== null) return state === undefined ? null : factsOfState(state);
  return session === null ? null : factsOfDetails(session);
}

function Head({ facts, isNow }: { facts: Facts; isNow: boolean }) {
  const isOver = facts.status === 'stopped' || facts.status === 'failed';
  return (
    <>
      <div class="title">
        <h1>{facts.name}</h1>
        <StatusBadge status={facts.status} />
        {isNow && !isOver && facts.status !== 'stopping' && (
          <SessionActions id={facts.id} name={facts.name} />
        )}
      </div>
      {facts.description !== '' && <p class="muted">{facts.description}</p>}
    </>
  );
}

/** What the screen showed, as long as it is kept. */
function Recording({ id }: { id: string }) {
  const [isShown, setShown] = useState(false);
  if (isShown) return <Player id={id} close={() => setShown(false)} />;
  return (
    <p>
      <button type="button" onClick={() => setShown(true)}>
        Play the recording
      </button>
    </p>
  );
}

/** The screen, and code that drives the browser, while it has one. */
function Live({ session }: { session: Details }) {
  const [isShown, setShown] = useState(false);
  const { viewer_url: viewerUrl, vnc_password: password, cdp_url: cdpUrl } = session;
  if (session.status !== 'active') return null;
  return (
    <>
      {viewerUrl !== null && password !== null && !isShown && (
        <p>
          <button type="button" class="primary" onClick={() => setShown(true)}>
            Show the live screen
          </button>
        </p>
      )}
      {viewerUrl !== null && password !== null && isShown && (
        <LiveScreen viewerUrl={viewerUrl} password={password} close={() => setShown(false)} />
      )}
      {cdpUrl === null ? (
        <p class="muted">Your key may watch what happens; to drive the browser takes a member.</p>
      ) : (
        <details class="drive">
          <summary>Code that drives it</summary>
          <div class="snippets">
            {snippetsFor(session.id, cdpUrl, SERVICE_URL).map(({ title, text }) => (
              <CopyBlock key={title} title={title} text={text} />
            ))}
          </div>
        </details>
      )}
      {!session.headless && may('member') && <Shares session={session} />}
    </>
  );
}
