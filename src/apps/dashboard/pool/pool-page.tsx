import { useEffect, useState } from 'preact/hooks';
import { listen, sessionOf } from '../live/organization-events.ts';
import { operatorToken } from '../api/credential.ts';
import { moment } from '../shell/moment.ts';
import { OperatorSignIn } from '../shell/operator-sign-in.tsx';
import { useResource } from '../api/use-resource.ts';
import './pool.css';
import { DecisionsSection } from './decisions-section.tsx';
import { momentMs, PoolSection } from './pool-section.tsx';
import { QueueSection, type Queue } from './queue-section.tsx';
import type { CounterName, Point } from './series.ts';
import { ServersSection } from './servers-section.tsx';

const EVERY_MS = 5_000;
const QUEUE_EVERY_MS = 10_000;
/**
 * Events come in bursts: what they changed is read once for those of this time. It is longer than
 * the second for which the API gives the same queue again, so that the answer has them.
 */
const GATHERED_MS = 1_100;

type Status = {
  autoscaler: { pool_status: Record<Exclude<CounterName, 'waiting'>, number> };
  timestamp: string;
};

/** The browsers of the service over time, who waits for one, and for operators why. */
export function PoolPage() {
  const isOperator = operatorToken.value !== null;
  const [isAsking, setAsking] = useState(false);
  const [servers, setServers] = useState<readonly string[]>([]);
  const again = useSessionEvents();
  const base = isOperator ? '/api/operator' : '/api';
  const queue = useResource<Queue>(`${base}/queue`, { again, everyMs: QUEUE_EVERY_MS });
  const status = useResource<Status>('/api/status', { again, everyMs: EVERY_MS });
  const at = momentMs();
  if (isAsking && !isOperator) return <OperatorSignIn />;
  const isPosition = moment.value !== null && at === null;
  return (
    <div class="page">
      <div class="title">
        <h1>Pool and queue</h1>
        <p class="muted">
          A browser is launched before it is asked for; a session that finds none waits.
        </p>
      </div>
      {isPosition && (
        <p class="notice warn">
          This page goes by time: it shows now, not the event that the address names. Click the
          chart to choose a moment.
        </p>
      )}
      <PoolSection key={base} current={currentOf(status.data, queue.data)} path={`${base}/pool`} />
      <QueueSection
        key={`${base}/queue`}
        queue={queue}
        isOperator={isOperator}
        isPast={at !== null}
      />
      {isOperator ? (
        <>
          <ServersSection onServers={setServers} />
          <DecisionsSection servers={servers} at={at} />
        </>
      ) : (
        <section aria-labelledby="operators-title" class="card pool-operators">
          <h2 id="operators-title">For operators</h2>
          <p class="muted">
            With the operator’s token this page also shows the queue of all organizations, the
            servers, and why the autoscaler changed the pool.
          </p>
          <button type="button" onClick={() => setAsking(true)}>
            Give the operator’s token
          </button>
        </section>
      )}
    </div>
  );
}

/** The counters of now, as the last point of the chart. */
function currentOf(status: Status | null, queue: Queue | null): Point | null {
  if (status === null || queue === null) return null;
  return { at: status.timestamp, ...status.autoscaler.pool_status, waiting: queue.total };
}

/** A number that changes after events of sessions. */
function useSessionEvents(): number {
  const [times, setTimes] = useState(0);
  useEffect(() => {
    let gathering: ReturnType<typeof setTimeout> | undefined;
    const gather = () => {
      gathering ??= setTimeout(() => {
        gathering = undefined;
        setTimes((before) => before + 1);
      }, GATHERED_MS);
    };
    const stop = listen({
      onOpen: (isGap) => isGap && gather(),
      onEvent: (event) => sessionOf(event) !== null && gather(),
    });
    return () => {
      clearTimeout(gathering);
      stop();
    };
  }, []);
  return times;
}
