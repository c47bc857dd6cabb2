import { createRedisViews } from '#projections/store/redis/redis-views.ts';
import { readCertificateEnds } from '#src/start/certificate-facts.ts';
import { natsAccess, redisAccess } from '#src/kernel/config/stores.ts';
import { findService, ServiceNotFoundError, type FoundService } from '#src/start/find-service.ts';
import type { Config } from '#src/kernel/config/config.ts';
import { configFactsOf } from '#src/apps/doctor/config-facts.ts';
import { gatherClusterFacts } from '#src/apps/doctor/cluster-facts.kubernetes.ts';
import { gatherEngineFacts } from '#src/apps/doctor/engine-facts.docker.ts';
import type {
  InstallationFacts,
  EventStoreFacts,
  ReadModelFacts,
  ProbeFailure,
} from '#src/apps/doctor/facts.ts';
import { gatherHostFacts } from '#src/apps/doctor/host-facts.ts';
import { gatherEventStoreFacts } from '#src/apps/doctor/event-store-facts.jetstream.ts';
import { gatherReadModelFacts } from '#src/apps/doctor/read-model-facts.redis.ts';
import { connectJetStream, EventStoreMissing } from '#src/kernel/event-store/jetstream/connect.ts';
import { raiseReplicas, type RaisedStream } from '#src/kernel/event-store/jetstream/replicas.ts';
import { DockerUnavailable } from '#src/browsers/docker/engine.ts';
import { PackageMissing } from '#src/kernel/optional-package.ts';
import { KubernetesUnavailable } from '#src/browsers/kubernetes/cluster.ts';

const READY_MS = 3_000;

type Env = Record<string, string | undefined>;

/** Examines all parts of an installation, independently of each other. Changes nothing. */
export async function gatherFacts(config: Config, env: Env): Promise<InstallationFacts> {
  const facts = configFactsOf(config, env);
  const found = await find(config);
  const isRunning = 'natsUrl' in found;
  const { docker, kubernetes } = config.browsers;
  const [host, log, readModel, engine, cluster, certificates] = await Promise.all([
    gatherHostFacts(config, isRunning),
    isRunning ? askLog(found, config) : found,
    isRunning ? askReadModel(found, config) : found,
    docker === null || !facts.hasProvisioner ? null : askEngine(docker),
    kubernetes === null || !facts.hasProvisioner ? null : askCluster(kubernetes),
    readCertificateEnds(config, isRunning ? found : { natsUrl: '', redisUrl: null }),
  ]);
  return { config: facts, host, log, readModel, engine, cluster, certificates };
}

/**
 * Creates missing streams, corrects settings that differ, and raises the replicas of each stream to
 * what the cluster allows.
 * @returns the streams whose replicas were raised
 * @throws Error if the event store is unavailable or refuses
 */
export async function fixLog(config: Config): Promise<RaisedStream[]> {
  const { natsUrl } = await findService(config);
  const options = { url: natsUrl, name: 'bss doctor', readyMs: READY_MS };
  await using connection = await connectJetStream({
    ...options,
    ...natsAccess(config),
  });
  return await raiseReplicas(connection, config.nats.replicas ?? undefined);
}

async function find(config: Config): Promise<FoundService | ProbeFailure> {
  try {
    return await findService(config);
  } catch (error) {
    if (!(error instanceof ServiceNotFoundError)) throw error;
    return { failure: error.message, advice: 'start it, then run bss doctor again', isBad: false };
  }
}

async function askLog(
  { natsUrl }: FoundService,
  config: Config,
): Promise<EventStoreFacts | ProbeFailure> {
  const options = { url: natsUrl, name: 'bss doctor', readyMs: READY_MS, makesStreams: false };
  try {
    await using connection = await connectJetStream({ ...options, ...natsAccess(config) });
    return await gatherEventStoreFacts(connection);
  } catch (error) {
    const failure = messageOf(error);
    if (error instanceof EventStoreMissing)
      return { failure, advice: 'start the service, or bss doctor --fix', isBad: false };
    const name = config.natsUrl === null ? 'the embedded nats-server' : 'NATS_URL';
    return { failure, advice: `check that ${name} runs and admits this user`, isBad: true };
  }
}

async function askReadModel(
  { redisUrl }: FoundService,
  config: Config,
): Promise<ReadModelFacts | ProbeFailure> {
  if (redisUrl === null)
    return { failure: 'REDIS_URL is not set', advice: 'set it beside NATS_URL', isBad: true };
  await using views = await createRedisViews({ url: redisUrl, ...redisAccess(config) });
  try {
    return await gatherReadModelFacts(views.redis);
  } catch (error) {
    const name = config.redisUrl === null ? 'the embedded redis-server' : 'REDIS_URL';
    const failure = `no answer from Redis at ${new URL(redisUrl).host}: ${messageOf(error)}`;
    return { failure, advice: `check that ${name} runs and admits this user`, isBad: true };
  }
}

async function askEngine(docker: NonNullable<Config['browsers']['docker']>) {
  try {
    return await gatherEngineFacts(docker);
  } catch (error) {
    if (!(error instanceof DockerUnavailable)) throw error;
    return {
      failure: error.message,
      advice: 'check DOCKER_HOST, and that this user may use the socket (group docker)',
      isBad: true,
    };
  }
}

async function askCluster(kubernetes: NonNullable<Config['browsers']['kubernetes']>) {
  try {
    return await gatherClusterFacts(kubernetes);
  } catch (error) {
    if (error instanceof PackageMissing)
      return { failure: error.message, advice: 'install it', isBad: true };
    if (!(error instanceof KubernetesUnavailable)) throw error;
    return {
      failure: error.message,
      advice: 'check KUBECONFIG or the service account, and KUBERNETES_NAMESPACE',
      isBad: true,
    };
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
