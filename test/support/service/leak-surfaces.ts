import { readFileSync } from 'node:fs';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { jetstreamManager } from '@nats-io/jetstream';
import { Redis } from 'ioredis';
import { connectJetStream } from '#src/event-store/jetstream/connect.ts';
import { descendantsOf } from './processes.ts';

/** Where something may be read that somebody wrote: a name for people, and all its text. */
export type Surface = { name: string; text: string };

/** Every message of every stream of the server, its subject, headers and body. */
export async function readStreams(natsUrl: string): Promise<Surface[]> {
  await using connection = await connectJetStream({ url: natsUrl, name: 'test' });
  const jsm = await jetstreamManager(connection.nc, { checkAPI: false });
  const surfaces: Surface[] = [];
  for await (const { config, state } of jsm.streams.list()) {
    const texts: string[] = [];
    for (let seq = state.first_seq; seq <= state.last_seq; seq += 1) {
      const stored = await jsm.streams.getMessage(config.name, { seq }).catch(() => null);
      if (stored === null) continue;
      texts.push(stored.subject, [...stored.header].flat(2).join('\n'), stored.string());
    }
    surfaces.push({ name: `stream ${config.name}`, text: texts.join('\n') });
  }
  return surfaces;
}

/** Every key of the read model's store, and what is under it. */
export async function readRedis(redisUrl: string): Promise<Surface[]> {
  const redis = new Redis(redisUrl);
  try {
    const keys = await redis.keys('*');
    const texts = await Promise.all(keys.map((key) => readKey(redis, key)));
    return [{ name: 'Redis', text: [...keys, ...texts].join('\n') }];
  } finally {
    redis.disconnect();
  }
}

async function readKey(redis: Redis, key: string): Promise<string> {
  switch (await redis.type(key)) {
    case 'hash':
      return JSON.stringify(await redis.hgetall(key));
    case 'zset':
      return (await redis.zrange(key, '0', '-1')).join('\n');
    case 'set':
      return (await redis.smembers(key)).join('\n');
    case 'list':
      return (await redis.lrange(key, 0, -1)).join('\n');
    default:
      return (await redis.get(key)) ?? '';
  }
}

/** Every file below a folder, but those of these names. */
export async function readFiles(folder: string, except: readonly string[]): Promise<Surface[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile() && !except.includes(entry.name));
  return Promise.all(
    files.map(async ({ parentPath, name }) => {
      const path = join(parentPath, name);
      return { name: path.slice(folder.length), text: await readFile(path, 'latin1') };
    }),
  );
}

/**
 * What every user of the machine sees of a process and those it has started, their command lines;
 * and what their own user sees of the latter, their environments.
 */
export function readProcesses(pid: number): { commandLines: Surface[]; environments: Surface[] } {
  const started = descendantsOf(pid);
  const own = {
    name: `command line of ${pid}`,
    text: readFileSync(`/proc/${pid}/cmdline`, 'utf8'),
  };
  const commandLines = started.map(({ command }) => ({
    name: `command line of ${command}`,
    text: command,
  }));
  const environments = started.flatMap((process) => {
    try {
      const text = readFileSync(`/proc/${process.pid}/environ`, 'utf8');
      return [{ name: `environment of ${process.command}`, text }];
    } catch {
      return []; // It has ended.
    }
  });
  return { commandLines: [own, ...commandLines], environments };
}
