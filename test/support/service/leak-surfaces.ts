import { readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { jetstreamManager } from '@nats-io/jetstream';
import { Redis } from 'ioredis';
import { connectJetStream } from '#src/kernel/event-store/jetstream/connect.ts';
import { filesBelow, nullIfGone } from '../scratch.ts';
import { descendantsOf } from './processes.ts';

/** A place where a secret could leak to: a name for messages, and all its text. */
export type LeakSurface = { name: string; text: string };

/** Every message of every stream of the server, its subject, headers and body. */
export async function readStreams(natsUrl: string): Promise<LeakSurface[]> {
  await using connection = await connectJetStream({ url: natsUrl, name: 'test' });
  const jsm = await jetstreamManager(connection.nc, { checkAPI: false });
  const surfaces: LeakSurface[] = [];
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

/** Every key of the read model's store and its value. */
export async function readRedis(redisUrl: string): Promise<LeakSurface[]> {
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

/**
 * Every file below a folder except those with these names, and those that a running service removes
 * meanwhile.
 */
export async function readFiles(folder: string, except: readonly string[]): Promise<LeakSurface[]> {
  const files = (await filesBelow(folder)).filter(({ name }) => !except.includes(name));
  const surfaces = files.map(async ({ parentPath, name }) => {
    const path = join(parentPath, name);
    const text = await readFile(path, 'latin1').catch(nullIfGone);
    return text === null ? [] : [{ name: path.slice(folder.length), text }];
  });
  return (await Promise.all(surfaces)).flat();
}

/**
 * The command lines of a process and its descendants, which every user of the machine can read, and
 * the environments of the descendants, which their own user can read.
 */
export function readProcesses(pid: number): {
  commandLines: LeakSurface[];
  environments: LeakSurface[];
} {
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
      return []; // The process has ended.
    }
  });
  return { commandLines: [own, ...commandLines], environments };
}
