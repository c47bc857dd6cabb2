import type { ProjectionStatus } from '#projections/runner/run-projections.ts';
import type { RoleName } from '#src/kernel/config/config.ts';
import { openInfrastructure, type ComposeOptions } from './infrastructure.ts';
import { issueDevelopmentKey, type DevelopmentAccess } from './development-key.ts';
import { readCertificateEnds } from '#src/start/certificate-facts.ts';
import { startFeatures } from './features.ts';
import {
  composeTelemetry,
  watchCertificateEnds,
  watchLeaks,
  watchProjections,
} from './telemetry.ts';

/** The roles of the service that run in this process. */
export type Service = {
  apiUrl: string | null;
  gatewayWsUrl: string | null;
  gatewayWssUrl: string | null;
  /** The development key, or why there is none; null if no text is to be printed about it. */
  developmentAccess: DevelopmentAccess | null;
  /** Resolves once idle browsers are ready (null), or with the reason of a failed launch. */
  warm(): Promise<string | null>;
  /**
   * What is missing for the start to be complete: parts that the API needs, and the browser server
   * if this process is one. Empty without the role api.
   */
  missing(): string[];
  /** The lag of each projection that runs in this process. */
  projectionStatus(): ProjectionStatus[];
} & AsyncDisposable;

/**
 * Opens the infrastructure, then starts each role of this process. Disposing ends them in reverse
 * order, so that what a role depends on outlives it.
 */
export async function compose(options: ComposeOptions): Promise<Service> {
  await using stack = new AsyncDisposableStack();
  const telemetry = await composeTelemetry(options, stack);
  const infrastructure = await openInfrastructure({ ...options, ...telemetry }, stack);
  watchCertificateEnds(telemetry, () => readCertificateEnds(options.config, options));
  const developmentAccess = await issueDevelopmentKey(infrastructure);
  const roles = await loadRoles(options.config.roles);
  const projecting = roles.projector
    ? stack.use(roles.projector.startProjector(infrastructure))
    : null;
  if (roles.timekeeper) stack.use(await roles.timekeeper.composeTimekeeper(infrastructure));
  if (roles.archivist) stack.use(await roles.archivist.composeArchivist(infrastructure));
  if (roles.objectSweep) stack.use(await roles.objectSweep.composeObjectSweep(infrastructure));
  await startFeatures(options.features, options.config.roles, infrastructure, stack);
  const provisioner = roles.provisioner
    ? stack.use(await roles.provisioner.composeProvisioner(infrastructure))
    : null;
  const gateway = roles.gateway
    ? stack.use(await roles.gateway.composeGateway(infrastructure))
    : null;
  const api = roles.api ? stack.use(await roles.api.composeApi(infrastructure, stack)) : null;
  if (projecting !== null) watchProjections(telemetry, projecting);
  if (provisioner !== null) watchLeaks(telemetry, provisioner);
  const all = stack.move();
  return {
    apiUrl: api?.url ?? null,
    gatewayWsUrl: gateway === null ? null : options.config.gateway.publicWsUrl,
    gatewayWssUrl: gateway === null ? null : options.config.gateway.publicWssUrl,
    developmentAccess,
    warm: () => provisioner?.warm() ?? Promise.resolve(null),
    missing: () => api?.missing() ?? [],
    projectionStatus: () => projecting?.status() ?? [],
    [Symbol.asyncDispose]: () => all.disposeAsync(),
  };
}

/** Loads the parts of these roles: a process has no module of a role that it does not run. */
async function loadRoles(names: readonly RoleName[]) {
  const load = <Part>(role: RoleName, part: () => Promise<Part>) =>
    names.includes(role) ? part() : null;
  const [api, projector, provisioner, gateway, timekeeper, archivist, objectSweep] =
    await Promise.all([
      load('api', () => import('./api.ts')),
      load('projector', () => import('./projector.ts')),
      load('provisioner', () => import('./provisioner.ts')),
      load('gateway', () => import('./gateway.ts')),
      load('timekeeper', () => import('./timekeeper.ts')),
      load('archivist', () => import('./archive/archivist.ts')),
      load('archivist', () => import('./objects/object-sweep.ts')),
    ]);
  return { api, projector, provisioner, gateway, timekeeper, archivist, objectSweep };
}
