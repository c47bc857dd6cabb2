import { describe, expect, it } from 'vitest';
import { NoAnswer, type EventsOptions, type ServiceEvent } from '#src/apps/client/client.ts';
import {
  frame,
  hangUp,
  refuse,
  startScripted,
  stream,
} from '#test/support/clients/scripted-service.ts';

const OPENING = 'retry: 1\nid: 7\n';
const HEARTBEAT = ': heartbeat\n';

type Scripted = Awaited<ReturnType<typeof startScripted>>;

/** The sequences of the next `count` events. */
async function hear(service: Scripted, count: number, options: EventsOptions = {}) {
  const received: number[] = [];
  for await (const { sequence } of service.client.events(options)) {
    received.push(sequence);
    if (received.length === count) break;
  }
  return received;
}

describe('the events', () => {
  it('continue after the last event when the connection is lost', async () => {
    await using service = await startScripted([
      stream([OPENING], 'break'),
      stream([OPENING, frame(8), HEARTBEAT, frame(9), frame(10).slice(0, 20)], 'break'),
      hangUp,
      refuse(503, 'UNAVAILABLE', { 'retry-after': '0' }),
      stream([frame(10), 'event: end\ndata: {"reason":"shutting_down","message":"."}\n\n']),
      stream([frame(11)], 'stay'),
    ]);
    const from = new Date('2026-11-21T00:00:00Z');
    expect(
      await hear(service, 4, { from, types: ['session.accessed'], labels: { a: 'b' } }),
    ).toEqual([8, 9, 10, 11]);
    const ids = service.asked.map(({ headers }) => headers['last-event-id']);
    expect(ids).toEqual([undefined, '7', '9', '9', '9', '10']);
    const query = 'from=2026-11-21T00%3A00%3A00.000Z&type=session.accessed&label=a%3Db';
    for (const { url } of service.asked) expect(url).toBe(`/api/events?${query}`);
  });

  it('are parsed whatever the boundaries of the network’s chunks', async () => {
    const bytes = Buffer.from(
      `${OPENING}${frame(8)}${HEARTBEAT}${frame(9)}`.replaceAll('\n', '\r\n'),
    );
    for (let size = 1; size <= 7; size += 1) {
      const pieces = Array.from({ length: Math.ceil(bytes.length / size) }, (_, at) =>
        bytes.subarray(at * size, (at + 1) * size),
      );
      await using service = await startScripted([
        (response) => {
          for (const piece of pieces) response.write(piece);
        },
      ]);
      const events: ServiceEvent[] = [];
      for await (const event of service.client.events({ from: 8 }))
        if (events.push(event) === 2) break;
      expect(events.map((event) => (event as unknown as { text: string }).text)).toEqual([
        'ä – 漢',
        'ä – 漢',
      ]);
      expect(service.asked[0]?.url).toBe('/api/events?from=8');
    }
  });

  it('of a session end with its last event, or with 204 No Content', async () => {
    await using service = await startScripted([
      stream([frame(1), frame(2, 'session.stopped')]),
      stream([frame(1)]),
      (response) => void response.writeHead(204).end(),
    ]);
    for (const expected of [[1, 2], [1]]) {
      const received = [];
      for await (const { sequence } of service.client.sessions.events('ses_1'))
        received.push(sequence);
      expect(received).toEqual(expected);
    }
    expect(service.asked.length).toBe(3);
  });

  it('end with an error if the key is revoked or the request is invalid', async () => {
    const revoked = 'event: end\ndata: {"reason":"credential_revoked","message":"No."}\n\n';
    await using service = await startScripted([
      stream([frame(1), revoked], 'stay'),
      refuse(400, 'INVALID_REQUEST'),
      refuse(401, 'UNAUTHORIZED'),
    ]);
    for (const error of ['UNAUTHORIZED', 'INVALID_REQUEST', 'UNAUTHORIZED'])
      await expect(hear(service, 9)).rejects.toMatchObject({ name: 'ServiceError', error });
    expect(service.asked.length).toBe(3);
  });

  it('end with an error after triesMax connections without an event', async () => {
    const answers = [stream([OPENING, frame(8)]), stream([OPENING]), hangUp, stream([OPENING])];
    await using service = await startScripted(answers);
    await expect(hear(service, 9, { triesMax: 3 })).rejects.toBeInstanceOf(NoAnswer);
    expect(service.asked.length).toBe(3);
  });

  it('go on after connections that had heartbeats alone, and arrive behind them', async () => {
    const quiet = [OPENING, HEARTBEAT];
    await using service = await startScripted([
      stream(quiet),
      stream([...quiet, HEARTBEAT], 'break'),
      stream(quiet),
      stream([...quiet, HEARTBEAT, frame(8), HEARTBEAT], 'stay'),
    ]);
    expect(await hear(service, 1, { triesMax: 2 })).toEqual([8]);
  });

  it('end with their signal; leaving the loop closes the connection', async () => {
    const closed: Promise<void>[] = [];
    await using service = await startScripted(
      [1, 2].map(() => (response) => {
        closed.push(new Promise((resolve) => response.on('close', () => resolve())));
        stream([frame(1)], 'stay')(response, response.req);
      }),
    );
    expect(await hear(service, 1)).toEqual([1]);
    const stop = new AbortController();
    const hearing = hear(service, 2, { signal: stop.signal });
    await expect.poll(() => closed.length).toBe(2);
    stop.abort(new Error('enough'));
    await expect(hearing).rejects.toThrow('enough');
    await Promise.all(closed);
  });
});
