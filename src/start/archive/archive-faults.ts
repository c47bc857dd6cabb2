import type { CorruptSegment } from '#src/features/archive/manifest.ts';
import type { Logger } from '#src/kernel/telemetry/logger.ts';
import type { Metrics } from '#src/kernel/telemetry/metrics.ts';

/** A fault that stays is met by each read: it is logged once, and counted each time. */
const LOGGED_MAX = 1_000;

/** Counts and logs the reads of the archive that were refused. */
export function createFaultReport(
  log: Pick<Logger, 'error'>,
  metrics: Pick<Metrics, 'watch'>,
): (fault: CorruptSegment) => void {
  let faults = 0;
  const logged = new Set<string>();
  metrics.watch(['bss_archive_faults_total'], () => ({ bss_archive_faults_total: faults }));
  return (fault) => {
    faults += 1;
    if (logged.has(fault.message) || logged.size === LOGGED_MAX) return;
    logged.add(fault.message);
    const { file, segment, line } = fault;
    const place = { part: 'archive', file, segment, line, err: fault };
    log.error(place, 'a file of the archive is missing or is not what was sealed');
  };
}
