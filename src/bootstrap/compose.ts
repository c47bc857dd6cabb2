import type { Standing } from '#projections/runner/run-projections.ts';
import type { RoleName } from '#src/config/config.ts';
import type { Urls } from '#src/gateway/access/urls.ts';
import type { Desk } from '#src/commands/handle-command.ts';
import { layGround, type Given } from './infrastructure.ts';
import { composeApi } from './api.ts';
import { composeGateway } from './gateway.ts';
import { composeProvisioner } from './provisioner.ts';
import { startProjector } from './projector.ts';
import { composeTelemetry, watchLeaks, watchProjections } from './telemetry.ts';
import { composeTimekeeper } from './timekeeper.ts';

/** The running service, or the roles of it that this process has. */
export type Service = {
  apiUrl: string | null;
  gatewayWsUrl: string | null;
  gatewayWssUrl: string | null;
  desk: Desk;
  urls: Urls;
  /** Resolves once its browsers wait (null), or a launch has failed (with what it said). */
  warm(): Promise<string | null>;
  /**
   * What this process waits for before its start has come to its end: what its API cannot serve
   * without, and the servers for browsers where it is to be one. Empty where no API is served.
   */
  missing(): string[];
  /** How far each projection is behind the log; none where this process folds none. */
  standings(): Standing[];
} & AsyncDisposable;

/**
 * The only place where adapters are made: what the roles stand on, then each role this process has.
 * Disposing ends them in reverse, so that each still finds what it needs.
 */
export async function compose(given: Given): Promise<Service> {
  await using stack = new AsyncDisposableStack();
  const telemetry = await composeTelemetry(given, stack);
  const ground = await layGround({ ...given, ...telemetry }, stack);
  const has = (role: RoleName) => given.config.roles.includes(role);
  const projecting = has('projector') ? stack.use(startProjector(ground)) : null;
  if (has('timekeeper')) stack.use(await composeTimekeeper(ground));
  const provisioner = has('provisioner') ? stack.use(await composeProvisioner(ground)) : null;
  const gateway = has('gateway') ? stack.use(await composeGateway(ground)) : null;
  const api = has('api') ? stack.use(await composeApi(ground, stack)) : null;
  if (projecting !== null) watchProjections(telemetry, projecting);
  if (provisioner !== null) watchLeaks(telemetry, provisioner);
  const all = stack.move();
  return {
    apiUrl: api?.url ?? null,
    gatewayWsUrl: gateway === null ? null : given.config.gateway.publicWsUrl,
    gatewayWssUrl: gateway === null ? null : given.config.gateway.publicWssUrl,
    desk: ground.desk,
    urls: ground.urls,
    warm: () => provisioner?.warm() ?? Promise.resolve(null),
    missing: () => api?.missing() ?? [],
    standings: () => projecting?.standings() ?? [],
    [Symbol.asyncDispose]: () => all.disposeAsync(),
  };
}
