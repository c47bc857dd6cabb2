import type { RecordedOf } from '#events/events.ts';
import { isRejected } from '#src/errors.ts';
import { causeAfter } from '#src/commands/metadata.ts';
import type { SessionIdentity } from '#src/domain/session/session.ts';
import type { RunningBrowser } from '../browsers/browsers.ts';
import { endWorkload } from './terminate.ts';
import { fitTo } from '../fit.ts';
import { canBecome, DEFAULTS, isSame } from './options.ts';
import { report, type Pool } from './pool.ts';
import type { Member } from './roster.ts';

const ME = 'provisioner';

/**
 * Gives a request an idle browser, in the size that it asks for, or has it wait for one that is
 * being launched: as it is where the request asks for something that no running browser can become.
 * Resolves when the log knows which: from then on the request is this server's, and its queue may
 * forget it.
 * @throws Error where the server is leaving; the request is anybody's then
 */
export async function takeOn(
  pool: Pool,
  identity: SessionIdentity,
  event: RecordedOf<'session'>,
): Promise<void> {
  const { browser: options } = event.state;
  const isFirst = !pool.waiting.some((one) => isSame(one.options, options));
  const member = isFirst && canBecome(DEFAULTS, options) ? pool.roster.longestIdle() : null;
  if (member !== null) {
    const isFit = isSame(member.options, options) || (await fitTo(pool, member, identity, event));
    if (isFit) return serve(pool, member, identity, event);
    if (!pool.isOpen) throw new Error('the server is leaving');
  }
  const assigned = Promise.withResolvers<unknown>();
  pool.waiting.push({ identity, event, options, failures: 0, assigned: assigned.promise });
  pool.changed();
  const launching = pool.roster.all().findLast(({ phase }) => phase === 'launching');
  const workloadId = launching?.workloadId ?? 'none-yet';
  const command = { type: 'AssignSession', workloadId, serverId: pool.server.id } as const;
  const told = pool.reporter.session(identity, command, causeAfter(event, ME));
  assigned.resolve(told.catch(() => undefined));
  await told;
}

/**
 * Hands a browser to a session: it is this session's from here on, and ended with it. The session's
 * `activated` is what the caller waits for; the browser's own event is told beside it.
 */
export async function serve(
  pool: Pool,
  member: Member,
  identity: SessionIdentity,
  event: RecordedOf<'session'>,
): Promise<void> {
  const { browser } = member;
  if (browser === null) throw new Error(`${member.workloadId} serves before it is launched`);
  member.session = identity;
  pool.roster.move(member, 'busy');
  const { organizationId, id: sessionId } = identity;
  const command = {
    type: 'ActivateSession',
    workload: workloadOf(pool, browser),
    now: pool.now(),
  } as const;
  const activating = pool.reporter.session(identity, command, causeAfter(event, ME));
  const assign = { type: 'Assign', organizationId, sessionId } as const;
  void report(pool, member, assign, causeAfter(event, ME));
  const activated = await activating;
  if (!isRejected(activated)) return noteSession(pool, member.workloadId, sessionId);
  // It was stopped in the meantime: the browser has been given away and is not used twice.
  member.session = null;
  await endWorkload(pool, member, 'session_ended', event);
}

/** For whoever looks at the machine; the log is what counts, so that nobody waits for it. */
function noteSession({ browsers, log }: Pool, workloadId: string, sessionId: string): void {
  browsers
    .assign(workloadId, sessionId)
    .catch((error: unknown) => log.warn({ err: error, workloadId }, 'a session was not noted'));
}

function workloadOf({ server }: Pool, { workloadId, cdp, vnc }: RunningBrowser) {
  return { workloadId, serverId: server.id, serverIp: server.ip, cdp, vnc };
}
