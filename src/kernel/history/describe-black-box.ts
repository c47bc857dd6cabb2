import type { BlackBox, BlackBoxEntry } from '#events/session/black-box.ts';
import type { RecordedEvent } from '#events/events.ts';

/** What a session's browser told before the end, as lines; the most telling first. */
export function describeBlackBox(box: BlackBox | undefined): string[] {
  if (box === undefined) return [];
  const { failedRequests = [], dialogs = [], address, pageCrashes, signal, exitCode } = box;
  const dialog = dialogs.at(-1);
  const request = failedRequests.at(-1);
  const answer = dialog?.accepted === undefined ? 'was open' : 'was answered';
  const crashed = pageCrashes === 1 ? 'a page crashed' : `${pageCrashes} pages crashed`;
  const code = exitCode === undefined ? '' : `exit code ${exitCode}`;
  const ended = [signal === undefined ? '' : `signal ${signal}`, code].filter((one) => one !== '');
  return [
    ...lastError(box),
    ...(request === undefined ? [] : [`the last request that failed: ${withAddress(request)}`]),
    ...(dialog === undefined ? [] : [`its last ${dialog.kind} ${answer}: ${withAddress(dialog)}`]),
    ...(pageCrashes === undefined ? [] : [`${crashed} before the end`]),
    ...(address === undefined ? [] : [`the last page was ${address}`]),
    ...(ended.length === 0 ? [] : [`the browser ended with ${ended.join(', ')}`]),
    ...(box.outOfMemory === true ? ['the kernel had no memory left for it'] : []),
    ...(box.memoryPeakBytes === undefined
      ? []
      : [`the browser used up to ${Math.round(box.memoryPeakBytes / 1024 ** 2)} MiB`]),
  ];
}

/** The page's last error, be it an exception or one that it wrote; in a list of one or none. */
function lastError({ exceptions = [], consoleErrors = [] }: BlackBox): string[] {
  const last = [...consoleErrors, ...exceptions].toSorted((one, other) =>
    one.at.localeCompare(other.at),
  );
  const error = last.at(-1);
  return error === undefined ? [] : [`the page’s last error was: ${withAddress(error)}`];
}

function withAddress({ text, address }: Omit<BlackBoxEntry, 'at'>): string {
  const [first = ''] = text.split('\n', 1);
  return address === undefined ? first : `${first} (${address})`;
}

/** What the browser told before the end that is among the events; null: nothing. */
export function blackBoxIn(events: readonly RecordedEvent[]): BlackBox | null {
  for (const event of events.toReversed())
    if (event.type === 'session.stopped' || event.type === 'session.failed')
      return event.data.blackBox ?? null;
  return null;
}
