import { mkdtemp, rm } from 'node:fs/promises';
import { connect, createServer } from 'node:net';
import type { Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { dockerHost } from './docker-engine.ts';

const ENGINE = dockerHost.slice('unix://'.length);

/**
 * A proxy to the engine that can be closed: open connections are cut, new ones are refused. It can
 * also hold requests, which are accepted and never answered, pass them on late, or refuse them.
 */
export async function openEngineDoor() {
  const folder = await mkdtemp(join(tmpdir(), 'bss-door-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  const path = join(folder, 'docker.sock');
  const sockets = new Set<Socket>();
  const events = new Set<Socket>();
  const held = new Set<Socket>();
  let holding: RegExp | null = null;
  let delaying: { like: RegExp; ms: number } | null = null;
  let refusing: RegExp | null = null;
  let refused = 0;
  let isShut = false;
  const server = createServer((client) => {
    if (isShut) return void client.destroy();
    const engine = connect(ENGINE);
    client.on('data', (bytes) => {
      const asked = bytes.toString();
      if (/^GET \S*\/events/.test(asked)) events.add(client).add(engine);
      if (refusing?.test(asked) === true) {
        refused += 1;
        return void client.destroy();
      }
      if (delaying?.like.test(asked) === true)
        return void setTimeout(() => engine.write(bytes), delaying.ms);
      if (holding?.test(asked) === true) held.add(client);
      if (!held.has(client)) engine.write(bytes);
    });
    client.on('end', () => engine.end());
    for (const [one, other] of [[client, engine] as const, [engine, client] as const]) {
      sockets.add(one);
      one.on('error', () => one.destroy()).on('close', () => other.destroy());
    }
    engine.pipe(client);
  });
  await new Promise<void>((listening) => server.listen(path, listening));
  const cut = (spared: ReadonlySet<Socket> = new Set()) => {
    for (const socket of sockets) if (!spared.has(socket)) socket.destroy();
  };
  return {
    host: `unix://${path}`,
    shut: ({ butEvents = false } = {}) => {
      isShut = true;
      cut(butEvents ? events : undefined);
    },
    open: () => void (isShut = false),
    /** Holds requests that begin with this from now on; null: none. */
    hold: (like: RegExp | null) => void (holding = like),
    /** Passes requests that begin with this on so many milliseconds later, from now on. */
    delay: (like: RegExp, ms: number) => void (delaying = { like, ms }),
    /** The number of held requests. */
    held: () => held.size,
    /** Cuts the connections of requests that begin with this from now on; null: none. */
    refuse: (like: RegExp | null) => void (refusing = like),
    /** The number of refused requests. */
    refused: () => refused,
    [Symbol.asyncDispose]: async () => {
      cut();
      await new Promise((closed) => server.close(closed));
    },
  };
}
