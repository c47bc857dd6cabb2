import type { ProjectionStatus } from '#projections/runner/run-projections.ts';
import type { RoleName } from '#src/config/config.ts';
import { openInfrastructure, type BootstrapOptions } from './infrastructure.ts';
import { composeArchivist } from './archivist.ts';
import { composeApi } from './api.ts';
import { issueDevelopmentKey, type DevelopmentAccess } from './development-key.ts';
import { composeGateway } from './gateway.ts';
import { composeObjectSweep } from './objects/object-sweep.ts';
import { composeProvisioner } from './provisioner.ts';
import { startProjector } from './projector.ts';
import { readCertificateEnds } from '#src/doctor/certificate-facts.ts';
import {
  composeTelemetry,
  watchCertificateEnds,
  watchLeaks,
  watchProjections,
} from './telemetry.ts';
import { composeTimekeeper } from './timekeeper.ts';
import { composeWebhooks } from './webhooks/compose-webhooks.ts';

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
export async function compose(options: BootstrapOptions): Promise<Service> {
  await using stack = new AsyncDisposableStack();
  const telemetry = await composeTelemetry(options, stack);
  const infrastructure = await openInfrastructure({ ...options, ...telemetry }, stack);
  watchCertificateEnds(telemetry, () => readCertificateEnds(options.config, options));
  const developmentAccess = await issueDevelopmentKey(infrastructure);
  const has = (role: RoleName) => options.config.roles.includes(role);
  const projecting = has('projector') ? stack.use(startProjector(infrastructure)) : null;
  if (has('timekeeper')) stack.use(await composeTimekeeper(infrastructure));
  if (has('archivist')) {
    stack.use(await composeArchivist(infrastructure));
    stack.use(await composeObjectSweep(infrastructure));
  }
  if (has('webhooks')) stack.use(await composeWebhooks(infrastructure));
  const provisioner = has('provisioner')
    ? stack.use(await composeProvisioner(infrastructure))
    : null;
  const gateway = has('gateway') ? stack.use(await composeGateway(infrastructure)) : null;
  const api = has('api') ? stack.use(await composeApi(infrastructure, stack)) : null;
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
