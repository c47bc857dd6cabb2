import { createHook } from 'node:async_hooks';
import { contexts, type Clock } from './clock.ts';

/**
 * Work of this process that takes real time: files, compression, cryptography, child processes.
 * Virtual time stands still while there is some, or every time-out would be over before a file is
 * read.
 */
export type RealWork = {
  /**
   * @throws once, if work in this time has opened a connection: what comes from it cannot be waited
   * for. Connections of others, as of an earlier test file in this process, do not matter.
   */
  isPending(): boolean;
} & Disposable;

/** Requests that end by themselves. */
const REQUESTS = new Set([
  'FSReqCallback',
  'FSReqPromise',
  'CloseReq',
  'GetAddrInfoReqWrap',
  'QueryReqWrap',
]);
/** What a child process and a thread hold until they have ended. */
const CHILDREN = new Set(['ProcessWrap', 'PipeWrap', 'Worker']);
/** The type of a connection that is being opened. */
const CONNECTING = 'TCPCONNECTWRAP';

/** Compression and cryptography that the thread pool works on, by async id: nothing lists it. */
const begun = new Set<number>();
/** Whether something began of which `active` may tell. */
let mayBeActive = true;
const watch = createHook({
  trackPromises: false,
  init(id, type, _trigger, resource) {
    if (type === 'TickObject') return;
    mayBeActive = true;
    if (type === CONNECTING) noteConnection(contexts.getStore()?.clock);
    if (type === 'ZLIB') note(id, resource, 'write');
    // SIGNREQUEST, HASHREQUEST and so on.
    else if (type.endsWith('REQUEST')) note(id, resource, 'run');
  },
  before: (id) => void begun.delete(id),
  destroy: (id) => void begun.delete(id),
});
type Watcher = { clock: Clock; hasConnected: boolean };
const watchers = new Set<Watcher>();

function noteConnection(clock: Clock | undefined): void {
  for (const watcher of watchers) if (watcher.clock === clock) watcher.hasConnected = true;
}

/** Watches the work in this time until it is disposed of; what was there before is not counted. */
export function watchRealWork(clock: Clock): RealWork {
  const watcher: Watcher = { clock, hasConnected: false };
  watchers.add(watcher);
  watch.enable();
  const before = active();
  mayBeActive = true;
  return {
    isPending() {
      if (watcher.hasConnected) {
        watcher.hasConnected = false;
        watchers.delete(watcher);
        throw new Error('virtual time has no network: a connection was opened');
      }
      if (begun.size > 0) return true;
      if (!mayBeActive) return false;
      const now = active();
      mayBeActive = now.requests > 0 || now.children > before.children;
      return mayBeActive;
    },
    [Symbol.dispose]() {
      watchers.delete(watcher);
      if (watchers.size === 0) watch.disable();
    },
  };
}

function active(): { requests: number; children: number } {
  const found = { requests: 0, children: 0 };
  for (const kind of process.getActiveResourcesInfo())
    if (REQUESTS.has(kind)) found.requests += 1;
    else if (CHILDREN.has(kind)) found.children += 1;
  return found;
}

/** Notes from the call of this method until its callback; a synchronous call returns a result. */
function note(id: number, native: object, method: 'write' | 'run'): void {
  const begin: unknown = Reflect.get(native, method);
  if (typeof begin !== 'function') return;
  Reflect.set(native, method, (...given: unknown[]): unknown => {
    begun.add(id);
    const result: unknown = Reflect.apply(begin, native, given);
    if (result !== undefined && !(result instanceof Promise)) begun.delete(id);
    return result;
  });
}
