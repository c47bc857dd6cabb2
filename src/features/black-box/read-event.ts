import { addNote, closeDialog, setAddress, type Kind, type Notes } from './notes.ts';

/**
 * What an event of a page says for the notes, by its name. Pure. A browser that a page has taken
 * over may send anything: what has not the shape of an event is left out.
 */
export const readers: Readonly<Record<string, Reader>> = {
  'Runtime.consoleAPICalled'({ type, args, timestamp, stackTrace }, notes, page) {
    if (type !== 'error' && type !== 'assert') return;
    const text = listIn(args).map(textOf).join(' ');
    const [frame] = listIn(recordOf(stackTrace)['callFrames']);
    const prefix = type === 'assert' ? 'Assertion failed: ' : '';
    add(notes, 'consoleErrors', page, {
      timestamp,
      text: prefix + text,
      url: recordOf(frame)['url'],
    });
  },
  'Runtime.exceptionThrown'({ timestamp, exceptionDetails }, notes, page) {
    const { text, exception, url } = recordOf(exceptionDetails);
    const { description, value } = recordOf(exception);
    const what = description ?? value;
    const whole = what === undefined ? String(text) : `${String(text)} ${asText(what)}`;
    add(notes, 'exceptions', page, { timestamp, text: whole, url });
  },
  'Log.entryAdded'({ entry }, notes, page) {
    const { source, level, text, timestamp, url } = recordOf(entry);
    if (level !== 'error') return;
    const kind = source === 'network' ? 'failedRequests' : 'consoleErrors';
    add(notes, kind, page, { timestamp, text, url });
  },
  'Page.frameNavigated'({ frame }, notes, page) {
    const { parentId, url, unreachableUrl } = recordOf(frame);
    if (parentId !== undefined) return;
    const address = unreachableUrl ?? url;
    if (typeof address === 'string') setAddress(notes, address);
    // It is no message of the page: the browser shows one of its own.
    if (unreachableUrl !== undefined)
      add(notes, 'failedRequests', page, { text: 'the page could not be loaded', url: address });
  },
  'Page.navigatedWithinDocument'({ frameId, url }, notes, { targetId }) {
    if (frameId === targetId && typeof url === 'string') setAddress(notes, url);
  },
  'Page.javascriptDialogOpening'({ url, message, type }, notes, page) {
    const kind = String(type).slice(0, 32);
    add(notes, 'dialogs', page, { text: message, url, kind });
  },
  'Page.javascriptDialogClosed'({ result }, notes) {
    closeDialog(notes, result === true);
  },
  'Inspector.targetCrashed'(_, notes) {
    notes.pageCrashes += 1;
  },
};

/**
 * @param page its target, whose id is that of its main frame, and the time for what has none:
 * milliseconds since the epoch
 */
type Reader = (params: Record<string, unknown>, notes: Notes, page: Page) => void;
type Page = { targetId: string; now: number };
type Found = { timestamp?: unknown; text: unknown; url?: unknown; kind?: string };

function add(notes: Notes, to: Kind, { now }: Page, found: Found): void {
  const { timestamp, text, url, kind } = found;
  const at = typeof timestamp === 'number' && isNear(timestamp, now) ? timestamp : now;
  addNote(notes, to, {
    at: Math.floor(at),
    text: asText(text),
    ...(typeof url === 'string' && url !== '' ? { address: url } : {}),
    ...(kind === undefined ? {} : { kind }),
  });
}

/** An argument as the console shows it, without what is inside of an object. */
function textOf(argument: unknown): string {
  const { value, description, type } = recordOf(argument);
  if (value !== undefined) return asText(value);
  return asText(description ?? type);
}

function asText(value: unknown): string {
  return typeof value === 'string' ? value : (JSON.stringify(value) ?? 'undefined');
}

/** Another time would be none that an event can have. */
function isNear(ms: number, now: number): boolean {
  return ms > 0 && ms < now + 60_000;
}

function listIn(value: unknown): unknown[] {
  return Array.isArray(value) ? value.slice(0, 16) : [];
}

function recordOf(value: unknown): Record<string, unknown> {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
}
