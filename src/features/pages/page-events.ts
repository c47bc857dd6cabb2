import { readAnswer, type Cdp, type CdpMessage } from '#src/browsers/link/cdp.ts';
import { parseForeignJson, readObject, textOf } from '#src/kernel/foreign/foreign-json.ts';

/** The parts of a browser's events that a call needs; those of the browser have no session. */
export type PageEvent = { sessionId: string | null } & (
  | { method: 'Page.lifecycleEvent'; frameId: string; loaderId: string; name: string }
  | { method: 'Page.frameDetached'; frameId: string }
  | { method: 'Page.downloadWillBegin'; frameId: string; fileName: string }
  | { method: 'Page.javascriptDialogOpening' | 'Inspector.targetCrashed' }
  | { method: 'Target.attachedToTarget'; attachedSessionId: string }
  | { method: 'Fetch.authRequired'; requestId: string }
  | { method: 'Fetch.requestPaused'; requestId: string; response: PausedResponse | null }
);

/** A call's connection to its browser. */
export type PageCdp = Cdp<PageEvent>;

/** The answer to a request of a frame, before it has it. Names of headers are in lower case. */
export type PausedResponse = {
  frameId: string;
  url: string;
  status: number;
  headers: ReadonlyMap<string, string>;
};

/** A name of an event, and all of an event that is read: more is no event of ours. */
const EVENT_BYTES_MAX = 4_096;
/** Of an event with the headers and the address of an answer; of a longer one neither is known. */
const RESPONSE_BYTES_MAX = 128 * 1024;
/** Where the names stand that are read without the rest: addresses and texts may be long. */
const HEAD_BYTES = 256;
const TAIL_BYTES = 96;
/** Of a longer event: its begin, of which no answer is read, and its end. */
export const EVENT_KEPT = { beginBytes: RESPONSE_BYTES_MAX, endBytes: TAIL_BYTES };
const METHOD = /^\{"method":"([A-Za-z.]{1,40})"/;
const ID = '([\\w.:-]{1,128})';
const SESSION = new RegExp(`"sessionId":"${ID}"\\}$`);
const REQUEST = new RegExp(`"params":\\{"requestId":"${ID}"`);
const ATTACHED = new RegExp(`"params":\\{"sessionId":"${ID}"`);
const FRAME = new RegExp(`"params":\\{"frameId":"${ID}"`);
const HAS_STATUS = '"responseStatusCode":';

const ANSWER = Buffer.from('{"id":');

/**
 * Reads answers, and of events those that are used, known by their first bytes; null: any other.
 * @throws SyntaxError if it is cut or garbled, RangeError if an answer has too many values
 */
export function readPageMessage(data: Buffer, bytesMax: number): CdpMessage<PageEvent> | null {
  if (data.subarray(0, ANSWER.length).equals(ANSWER))
    return readAnswer(readObject(parseForeignJson(data, { bytesMax })));
  const event = readEvent(data);
  return event === null ? null : { event };
}

function readEvent(data: Buffer): PageEvent | null {
  const head = data.subarray(0, HEAD_BYTES).toString('latin1');
  const [, method = ''] = METHOD.exec(head) ?? [];
  const tail = data.subarray(-TAIL_BYTES).toString('latin1');
  const sessionId = SESSION.exec(tail)?.[1] ?? null;
  switch (method) {
    // A dialog's text may be long, and is not needed.
    case 'Page.javascriptDialogOpening':
    case 'Inspector.targetCrashed':
      return { method, sessionId };
    case 'Page.lifecycleEvent': {
      const params = paramsOf(data, method);
      const [frameId, loaderId] = [textOf(params['frameId']), textOf(params['loaderId'])];
      return { method, sessionId, frameId, loaderId, name: textOf(params['name']) };
    }
    case 'Page.frameDetached':
      return { method, sessionId, frameId: textOf(paramsOf(data, method)['frameId']) };
    case 'Page.downloadWillBegin':
      return { method, sessionId, frameId: found(FRAME, head), fileName: fileNameOf(data) };
    case 'Target.attachedToTarget':
      return { method, sessionId, attachedSessionId: found(ATTACHED, head) };
    case 'Fetch.authRequired':
      return { method, sessionId, requestId: found(REQUEST, head) };
    case 'Fetch.requestPaused':
      return { method, sessionId, requestId: found(REQUEST, head), response: responseOf(data) };
    default:
      return null;
  }
}

function paramsOf(data: Buffer, method: string, bytesMax = EVENT_BYTES_MAX) {
  if (data.length > bytesMax) throw new SyntaxError(`a ${method} has ${data.length} bytes`);
  return readObject(readObject(parseForeignJson(data, { bytesMax }))['params']);
}

function found(pattern: RegExp, text: string): string {
  const [, value] = pattern.exec(text) ?? [];
  if (value === undefined) throw new SyntaxError('an id is missing');
  return value;
}

/** Empty: its address, as a data: address may be, is too long to be read. */
function fileNameOf(data: Buffer): string {
  if (data.length > RESPONSE_BYTES_MAX) return '';
  return textOf(paramsOf(data, 'download', RESPONSE_BYTES_MAX)['suggestedFilename']);
}

/** Null: a request that has no answer yet, or whose answer is too long to be read. */
function responseOf(data: Buffer): PausedResponse | null {
  if (data.length > RESPONSE_BYTES_MAX || !data.includes(HAS_STATUS)) return null;
  const params = paramsOf(data, 'response', RESPONSE_BYTES_MAX);
  const status = params['responseStatusCode'];
  // A page may have that name in what it sends.
  if (typeof status !== 'number') return null;
  const listed = params['responseHeaders'] ?? [];
  if (!Array.isArray(listed)) throw new SyntaxError('headers are no list');
  const headers = listed.map(readObject).map(({ name, value }) => [name, value].map(textOf));
  return {
    frameId: textOf(params['frameId']),
    url: textOf(readObject(params['request'])['url']),
    status,
    headers: new Map(headers.map(([name = '', value = '']) => [name.toLowerCase(), value])),
  };
}
