import type { RecordedOf } from '#events/events.ts';
import { causeAfter } from '../commands/metadata.ts';
import type { SessionIdentity } from '../domain/session/session.ts';
import { endWorkload } from './pool/terminate.ts';
import { fitScreen } from './browsers/chromium/resize-screen.ts';
import { screenOf } from './pool/options.ts';
import { report, type Pool } from './pool/pool.ts';
import type { Member } from './pool/roster.ts';

const ME = 'provisioner';
/** It takes some 50 ms, a launch 400; on a busy machine a launch takes 3,000. */
const FIT_MS = 1_500;

/**
 * Makes a browser that waits what the request asks for, before it serves. Where that fails the
 * browser is ended: it is of no known size, and its session gets another.
 * @returns true once it may serve; the browser is the caller's then, and nobody else takes it
 */
export async function fitTo(
  pool: Pool,
  member: Member,
  { organizationId, id: sessionId }: SessionIdentity,
  event: RecordedOf<'session'>,
): Promise<boolean> {
  const { browser, workloadId } = member;
  if (browser === null) throw new Error(`${workloadId} waits before it is launched`);
  const { browser: options } = event.state;
  pool.roster.move(member, 'busy');
  // First: a later process must not take it for one that still waits as it was launched.
  const assign = { type: 'Assign', organizationId, sessionId } as const;
  await report(pool, member, assign, causeAfter(event, ME));
  const asked = { vncPassword: pool.vncPasswordOf(workloadId), screen: screenOf(options) };
  try {
    await fitScreen(browser, asked, AbortSignal.timeout(FIT_MS));
  } catch (error) {
    pool.log.warn({ err: error, workloadId, sessionId }, 'a browser could not be given its size');
    void endWorkload(pool, member, 'retired', event);
    return false;
  }
  member.options = options;
  return isBusy(member);
}

/** It may have ended meanwhile, by itself or with its server. */
function isBusy({ phase }: Member): boolean {
  return phase === 'busy';
}
