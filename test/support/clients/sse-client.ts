import { Agent, request, type IncomingHttpHeaders, type IncomingMessage } from 'node:http';
import { once } from 'node:events';
import type { CloudEvent } from '#events/cloud-event.ts';
import { DEV_KEY } from '#test/support/service/service.ts';

/** A block of a stream: an event, with the comments before it. */
export type Block = {
  comment?: string;
  id?: string;
  event?: string;
  data?: string;
  retry?: string;
};

/**
 * A stream as its client receives it, parsed by the standard's rules, without features that the
 * service does not use.
 */
export type Stream = {
  status: number;
  headers: IncomingHttpHeaders;
  /** All received blocks, oldest first. */
  blocks: Block[];
  /** The received CloudEvents. */
  events(): CloudEvent[];
  /** The id to reconnect with. */
  lastId(): string | null;
  /** Called for each block when it arrives. */
  onBlock(listener: (block: Block) => void): void;
  /** Resolves once the other side has ended the stream, or the connection has broken. */
  ended: Promise<void>;
  /** Whether the response arrived to its end; false also while it lasts. */
  isComplete(): boolean;
  /** Stops reading, like a program that hangs, or continues. */
  pause(): void;
  resume(): void;
} & Disposable;

export type StreamOptions = { key?: string | null; lastId?: string; headers?: object };

const agent = new Agent({ maxSockets: Infinity });

/**
 * Opens a stream; resolves with its head. If the answer is not a stream, `blocks` holds its body.
 */
export async function openStream(url: string, options: StreamOptions = {}): Promise<Stream> {
  const { key = DEV_KEY, lastId, headers = {} } = options;
  const sent = request(url, {
    agent,
    headers: {
      ...(key === null ? {} : { authorization: `Bearer ${key}` }),
      ...(lastId === undefined ? {} : { 'last-event-id': lastId }),
      ...headers,
    },
  });
  sent.end();
  const [response] = (await once(sent, 'response')) as [IncomingMessage];
  return read(response, () => sent.destroy());
}

function read(response: IncomingMessage, cut: () => void): Stream {
  const blocks: Block[] = [];
  const listeners: ((block: Block) => void)[] = [];
  let rest = '';
  let lastId = (response.headers['last-event-id'] as string | undefined) ?? null;
  response.setEncoding('utf8').on('data', (text: string) => {
    const parts = (rest + text).split('\n\n');
    rest = parts.pop() ?? '';
    for (const part of parts) {
      const block = parseBlock(part);
      lastId = block.id ?? lastId;
      blocks.push(block);
      for (const listener of listeners) listener(block);
    }
  });
  response.on('error', () => undefined);
  const ended = new Promise<void>((resolve) => void response.once('close', () => resolve()));
  return {
    status: response.statusCode ?? 0,
    headers: response.headers,
    blocks,
    events: () => blocks.flatMap(eventOf),
    lastId: () => lastId,
    onBlock: (listener) => void listeners.push(listener),
    ended,
    isComplete: () => response.complete,
    pause: () => void response.pause(),
    resume: () => void response.resume(),
    [Symbol.dispose]: cut,
  };
}

/** The CloudEvent of a block, if it holds one. */
export function eventOf({ event, data }: Block): CloudEvent[] {
  return event?.includes('.') && data !== undefined ? [JSON.parse(data) as CloudEvent] : [];
}

function parseBlock(text: string): Block {
  const block: Block = {};
  for (const line of text.split('\n')) {
    const [, field = '', value = ''] = /^([^:]*): ?(.*)$/.exec(line) ?? [];
    if (field === '') block.comment = value;
    else block[field as 'id'] = value;
  }
  return block;
}
