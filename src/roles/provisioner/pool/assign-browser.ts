import type { EventWithState, RecordedOf } from '#events/events.ts';
import type { SessionWorkload } from '#events/session.ts';
import { isRejection } from '#src/kernel/errors.ts';
import { metadataFrom } from '#src/commands/metadata.ts';
import type { SessionIdentity } from '#src/kernel/domain/session/session.ts';
import type { RunningBrowser } from '#src/browsers/browsers.ts';
import { resizeScreen } from '#src/browsers/chromium/resize-screen.ts';
import { beginParts } from '../browser-part.ts';
import { recordEvery } from './egress.ts';
import { terminateBrowser } from './terminate.ts';
import { screenOf } from './options.ts';
import type { Pool } from './pool.ts';
import type { PooledBrowser } from './roster.ts';

const ACTOR = 'provisioner';
/** A resize takes some 50 ms, a launch 400; on a busy machine a launch takes 3,000. */
const RESIZE_MS = 1_500;

/**
 * Assigns a browser to a session and activates the session; from here on the browser ends with it.
 * Resolves when `session.activated` has been appended; the workload's own event is not awaited.
 * @param wasIdle whether it was idle: the workload's event follows the session's then. If the
 * process ends in between, the next start's reconciliation finds the session
 * @param isContested whether another server may have the session by now: the browser stays idle
 * then
 * @returns false if the session is another server's, or was stopped in the meantime
 * @throws Error where the session cannot be read; its browser is terminated
 */
export async function assignBrowser(
  pool: Pool,
  pooled: PooledBrowser,
  identity: SessionIdentity,
  event: RecordedOf<'session'>,
  { wasIdle, isContested } = { wasIdle: false, isContested: false },
): Promise<boolean> {
  const { browser } = pooled;
  if (browser === null) throw new Error(`${pooled.workloadId} is assigned before it is launched`);
  pooled.session = identity;
  pool.roster.move(pooled, 'busy');
  const { organizationId, id: sessionId } = identity;
  const command = {
    type: 'ActivateSession',
    workload: workloadOf(pool, browser, pooled.egress !== null),
    now: pool.now(),
  } as const;
  const assign = { type: 'Assign', organizationId, sessionId } as const;
  const reportAssigned = () => void pool.reporter.queue(pooled, assign, metadataFrom(event, ACTOR));
  const activating = pool.reporter.session(identity, command, metadataFrom(event, ACTOR));
  if (!wasIdle) reportAssigned();
  const activated = await activating.catch(async (error: unknown) => {
    // The session may have got the browser: no other one gets it. After the pool has closed, the
    // next start's reconciliation decides.
    if (pool.isOpen) {
      pooled.session = null;
      await terminateBrowser(pool, pooled, 'session_ended', event);
    }
    throw error;
  });
  if (!isRejection(activated)) {
    if (wasIdle) reportAssigned();
    // The answer may come after the browser's end, which has ended all of these.
    if (!isBusy(pooled)) return true;
    beginParts(pool, browser, activated.state, false);
    labelBrowser(pool, pooled.workloadId, sessionId);
    recordEvery(pool, pooled);
    return true;
  }
  pooled.session = null;
  if (isContested && isBusy(pooled) && pool.isOpen) pool.roster.move(pooled, 'idle');
  // It may have been launched or resized for this session.
  else await terminateBrowser(pool, pooled, 'session_ended', event);
  return false;
}

/**
 * Resizes an idle browser to the request's viewport, before it is assigned. The caller gets the
 * browser to itself: it counts as busy from the start. Where the resize fails the browser is
 * terminated, since its size is unknown then, and the session needs another one.
 * @returns whether the browser can be assigned
 */
export async function resizeToOptions(
  pool: Pool,
  pooled: PooledBrowser,
  { organizationId, id: sessionId }: SessionIdentity,
  event: EventWithState<'session'>,
): Promise<boolean> {
  const { browser, workloadId } = pooled;
  if (browser === null) throw new Error(`${workloadId} is idle before it is launched`);
  const { browser: options } = event.state;
  pool.roster.move(pooled, 'busy');
  // First: a later process must not adopt it as an idle browser of the default size.
  const assign = { type: 'Assign', organizationId, sessionId } as const;
  await pool.reporter.queue(pooled, assign, metadataFrom(event, ACTOR));
  const target = { vncPassword: pool.vncPasswordOf(workloadId), screen: screenOf(options) };
  try {
    await resizeScreen(browser, target, AbortSignal.timeout(RESIZE_MS));
  } catch (error) {
    pool.log.warn({ err: error, workloadId, sessionId }, 'failed to resize a browser');
    void terminateBrowser(pool, pooled, 'retired', event);
    return false;
  }
  pooled.options = options;
  return isBusy(pooled);
}

/** False if it has ended meanwhile, by itself or with its server. */
function isBusy({ phase }: PooledBrowser): boolean {
  return phase === 'busy';
}

/**
 * Labels the browser with its session, for operators and for what evicts Pods; not awaited, since
 * the log is what counts.
 */
export function labelBrowser({ browsers, log }: Pool, workloadId: string, sessionId: string): void {
  browsers
    .assign(workloadId, sessionId)
    .catch((error: unknown) =>
      log.warn({ err: error, workloadId, sessionId }, 'failed to label a browser with its session'),
    );
}

function workloadOf(
  { server, browsers }: Pool,
  { workloadId, cdp, vnc, webdriver }: RunningBrowser,
  hasEgress: boolean,
): SessionWorkload {
  const { egress } = browsers;
  return {
    workloadId,
    serverId: server.id,
    serverIp: server.ip,
    // One by one: an address has the key of its link, which no event may have.
    cdp: { host: cdp.host, port: cdp.port, path: cdp.path },
    vnc: { host: vnc.host, port: vnc.port },
    ...(cdp.linkKey === undefined ? {} : { link: 'tls-psk' }),
    ...(webdriver === undefined ? {} : { webdriver }),
    ...(hasEgress && egress !== undefined ? { egress } : {}),
  };
}
