import type { SessionState } from '#events/session.ts';
import { newMetadata } from '#src/commands/metadata.ts';
import type { EgressProxy } from '#src/browsers/egress-endpoint.ts';
import type { Pool } from './pool.ts';
import type { PooledBrowser } from './roster.ts';

const ACTOR = 'provisioner/egress';
/**
 * Traffic is recorded 10 s after the session has its browser, then after twice as long each time:
 * somebody who looks for a refused host finds it at once, and a session of a day has 150 records.
 */
const RECORD_MS = 10_000;
const RECORD_MAX_MS = 600_000;

/** The proxy of a session's browser; null: the session has no rules. */
export async function openEgressFor(
  { openEgress }: Pool,
  { id, egress }: Pick<SessionState, 'id' | 'egress'>,
): Promise<EgressProxy | null> {
  return egress === undefined ? null : openEgress(egress, id);
}

/** Records the traffic of a browser with a proxy, as long as it serves its session. */
export function recordEvery(pool: Pool, pooled: PooledBrowser, pauseMs = RECORD_MS): void {
  if (pooled.egress === null) return;
  const timer = setTimeout(() => {
    if (pooled.phase !== 'busy') return;
    // An adopted browser's is there before the pool is open.
    if (!pool.isOpen) return recordEvery(pool, pooled, pauseMs);
    void record(pool, pooled).finally(() =>
      recordEvery(pool, pooled, Math.min(2 * pauseMs, RECORD_MAX_MS)),
    );
  }, pauseMs);
  timer.unref();
}

/** Closes the browser's proxy, if it has one, and records the rest of its traffic. Idempotent. */
export async function closeEgress(pool: Pool, pooled: PooledBrowser): Promise<void> {
  const { egress, workloadId } = pooled;
  if (egress === null) return;
  await egress[Symbol.asyncDispose]().catch((error: unknown) =>
    pool.log.warn({ err: error, workloadId }, 'failed to close the egress proxy of a browser'),
  );
  await record(pool, pooled);
  pooled.egress = null;
}

/** Never rejects: what could not be recorded is logged, and lost. */
async function record(pool: Pool, { egress, session, workloadId }: PooledBrowser): Promise<void> {
  const traffic = session === null ? null : (egress?.takeTraffic() ?? null);
  if (session === null || traffic === null) return;
  const command = { type: 'RecordEgress', traffic, now: pool.now() } as const;
  await pool.reporter
    .session(session, command, newMetadata(ACTOR))
    .catch((error: unknown) =>
      pool.log.error({ err: error, workloadId, session }, 'failed to record egress traffic'),
    );
}
