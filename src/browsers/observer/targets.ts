import { within } from '#src/kernel/async/timeout.ts';
import type { CdpEvent } from '#src/browsers/link/cdp.ts';
import { createSource, listen, type Source } from './listeners.ts';
import type {
  ObservedBrowserConnection,
  ObservedTarget,
  ObserverPart,
  TargetType,
} from './part.ts';

/** Targets of one browser that are attached; a further one is let go. */
const TARGETS_MAX = 128;
/** A held page runs at the latest after this. */
const HELD_MS_MAX = 2_000;
const NESTED: readonly TargetType[] = ['iframe', 'worker'];

/** Does what a part wants, and logs a failure unless the signal has aborted. Never rejects. */
export type Attempt = (
  part: string,
  work: () => void | Promise<void>,
  closed: AbortSignal,
) => Promise<void>;

type Options = {
  connection: ObservedBrowserConnection;
  parts: readonly ObserverPart[];
  attempt: Attempt;
};
type AttachedToTarget = {
  sessionId: string;
  waitingForDebugger?: boolean;
  targetInfo: { targetId: string; type: TargetType; url: string };
};

/** The targets of a connection that its parts want, by their CDP sessions. */
export type Targets = {
  /** Attaches to the open pages and to all that follow; resolves once the open ones are ready. */
  begin(): Promise<void>;
  /** Follows which targets there are. */
  take(event: CdpEvent): void;
  source(sessionId: string): Source | undefined;
  /** The connection has ended, and all targets with it. */
  end(): void;
};

export function followTargets({ connection, parts, attempt }: Options): Targets {
  const { workloadId, send } = connection;
  const sources = new Map<string, Source>();
  const wanted = new Set(parts.flatMap(typesOf));
  const isNesting = NESTED.some((type) => wanted.has(type));
  const holds = parts.some(({ pages }) => pages?.holds?.(connection) === true);
  /** What is being put in place in the pages that are open from the start; null: that is over. */
  let beginning: Promise<void>[] | null = [];

  /** @param sessionId a target, for those below it; absent: the browser, for its pages */
  async function autoAttach(sessionId?: string): Promise<void> {
    // Iframes and workers are below pages, so pages are attached for their sake as well.
    const types = sessionId === undefined ? ['page'] : NESTED.filter((type) => wanted.has(type));
    const filter = types.map((type) => ({ type }));
    const params = { autoAttach: true, waitForDebuggerOnStart: holds, flatten: true, filter };
    await send('Target.setAutoAttach', params, sessionId);
  }
  async function putInPlace(target: ObservedTarget, isHeld: boolean): Promise<void> {
    const { type, sessionId, closed } = target;
    const works = parts
      .filter((part) => typesOf(part).includes(type))
      .map((part) => attempt(part.name, () => part.pages?.attached(target), closed));
    if (isNesting && type !== 'worker')
      works.push(attempt('nested targets', () => autoAttach(sessionId), closed));
    const inPlace = Promise.all(works);
    if (!isHeld) return void (await inPlace);
    await within(HELD_MS_MAX, inPlace, () => undefined);
    await target.send('Runtime.runIfWaitingForDebugger').catch(() => undefined);
  }
  function attach({ sessionId, targetInfo, waitingForDebugger }: AttachedToTarget): void {
    if (sources.size >= TARGETS_MAX) {
      // It runs then, even if it was held.
      void send('Target.detachFromTarget', { sessionId }).catch(() => undefined);
      return;
    }
    const { targetId, type, url } = targetInfo;
    const source = createSource();
    sources.set(sessionId, source);
    const target: ObservedTarget = {
      browser: connection,
      workloadId,
      targetId,
      type,
      url,
      sessionId,
      send: (method, params) => send(method, params, sessionId),
      on: (event, listener) => listen(source, event, listener),
      closed: source.end.signal,
    };
    const work = putInPlace(target, waitingForDebugger === true);
    if (beginning !== null) beginning.push(work);
  }
  function detach(sessionId: string): void {
    sources.get(sessionId)?.end.abort();
    sources.delete(sessionId);
  }

  return {
    async begin() {
      // Its answer follows the events about the pages that are open.
      if (wanted.size > 0) await attempt('targets', () => autoAttach(), connection.closed);
      const begun = beginning ?? [];
      beginning = null;
      await Promise.all(begun);
    },
    take({ method, params }) {
      if (method === 'Target.attachedToTarget') attach(params as AttachedToTarget);
      if (method === 'Target.detachedFromTarget') detach(String(params['sessionId']));
    },
    source: (sessionId) => sources.get(sessionId),
    end() {
      for (const sessionId of sources.keys()) detach(sessionId);
    },
  };
}

function typesOf({ pages }: ObserverPart): readonly TargetType[] {
  return pages === undefined ? [] : (pages.types ?? ['page']);
}
