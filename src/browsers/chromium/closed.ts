/** The last line of deploy/browser/entrypoint.sh where its user has closed Chromium. */
const CLOSED_LINE = 'Chromium was closed';

/**
 * Whether a container's end was the browser's close by its user. Needs both: an engine may report 0
 * for a container whose exit code it has lost.
 */
export function isClose(exitCode: number | null, output: string): boolean {
  return exitCode === 0 && output.trimEnd().endsWith(CLOSED_LINE);
}
