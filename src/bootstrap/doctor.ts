import { createRedisViews } from '#projections/store/redis/redis-views.ts';
import { natsAccess, redisAccess } from './infrastructure.ts';
import { NoService } from '../cli/errors.ts';
import { findService, type FoundService } from './find-service.ts';
import type { Config } from '#src/config/config.ts';
import { configFactsOf } from '#src/doctor/config-facts.ts';
import { gatherEngineFacts } from '#src/doctor/engine-facts.docker.ts';
import type { Facts, LogFacts, ReadModelFacts, Trouble } from '#src/doctor/facts.ts';
import { gatherHostFacts } from '#src/doctor/host-facts.ts';
import { gatherLogFacts } from '#src/doctor/event-store-facts.jetstream.ts';
import { gatherReadModelFacts } from '#src/doctor/read-model-facts.redis.ts';
import { connectJetStream, NoLog } from '#src/event-store/jetstream/connect.ts';
import { raiseReplicas, type RaisedStream } from '#src/event-store/jetstream/replicas.ts';
import { DockerUnavailable } from '#src/provisioner/browsers/docker/engine.ts';

const READY_MS = 3_000;

type Env = Record<string, string | undefined>;

/** Asks all parts of an installation, each whatever the others say. Changes nothing. */
export async function gatherFacts(config: Config, env: Env): Promise<Facts> {
  const facts = configFactsOf(config, env);
  const found = await find(config);
  const isRunning = 'natsUrl' in found;
  const { docker } = config.browsers;
  const [host, log, readModel, engine] = await Promise.all([
    gatherHostFacts(config, isRunning),
    isRunning ? askLog(found, config) : found,
    isRunning ? askReadModel(found, config) : found,
    docker === null || !facts.hasProvisioner ? null : askEngine(docker),
  ]);
  return { config: facts, host, log, readModel, engine };
}

/**
 * Puts right what can be: makes streams that are missing, sets what differs, raises the copies of
 * each to what the cluster bears. @returns what it raised @throws Error where the log is away or
 * refuses
 */
export async function fixLog(config: Config): Promise<RaisedStream[]> {
  const { natsUrl } = await findService(config);
  const options = { url: natsUrl, name: 'bss doctor', readyMs: READY_MS };
  await using connection = await connectJetStream({
    ...options,
    ...natsAccess(config),
    hasArchive: config.hasArchive,
  });
  return await raiseReplicas(connection, config.nats.replicas ?? undefined);
}

async function find(config: Config): Promise<FoundService | Trouble> {
  try {
    return await findService(config);
  } catch (error) {
    if (!(error instanceof NoService)) throw error;
    return { trouble: error.message, advice: 'start it, then ask again', isBad: false };
  }
}

async function askLog({ natsUrl }: FoundService, config: Config): Promise<LogFacts | Trouble> {
  const options = { url: natsUrl, name: 'bss doctor', readyMs: READY_MS, makesStreams: false };
  try {
    await using connection = await connectJetStream({ ...options, ...natsAccess(config) });
    return await gatherLogFacts(connection);
  } catch (error) {
    const trouble = messageOf(error);
    if (error instanceof NoLog)
      return { trouble, advice: 'start the service, or bss doctor --fix', isBad: false };
    const name = config.natsUrl === null ? 'the embedded nats-server' : 'NATS_URL';
    return { trouble, advice: `see that ${name} runs, and lets this user in`, isBad: true };
  }
}

async function askReadModel(
  { redisUrl }: FoundService,
  config: Config,
): Promise<ReadModelFacts | Trouble> {
  if (redisUrl === null)
    return { trouble: 'REDIS_URL is not given', advice: 'give it beside NATS_URL', isBad: true };
  await using views = await createRedisViews({ url: redisUrl, ...redisAccess(config) });
  try {
    return await gatherReadModelFacts(views.redis);
  } catch (error) {
    const name = config.redisUrl === null ? 'the embedded redis-server' : 'REDIS_URL';
    const trouble = `no answer of Redis at ${new URL(redisUrl).host}: ${messageOf(error)}`;
    return { trouble, advice: `see that ${name} runs, and lets this user in`, isBad: true };
  }
}

async function askEngine(docker: NonNullable<Config['browsers']['docker']>) {
  try {
    return await gatherEngineFacts(docker);
  } catch (error) {
    if (!(error instanceof DockerUnavailable)) throw error;
    return { trouble: error.message, advice: 'see DOCKER_HOST, and its group', isBad: true };
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
