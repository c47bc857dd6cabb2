import type { RoleName } from '#src/kernel/config/config.ts';
import type { Feature, FeatureApi, FeatureProcess } from '#src/features/feature.ts';
import type { AddRoutes } from '#src/roles/api/routes.ts';

/** The routes of the features, and what has been opened for them. */
export type FeatureRoutes = { added: AddRoutes[] } & AsyncDisposable;

/** Loads the routes of the features. @param open what a feature's routes need of this process */
export async function loadRoutes(
  features: readonly Feature[],
  open: (api: FeatureApi, name: string) => unknown,
): Promise<FeatureRoutes> {
  const added: AddRoutes[] = [];
  const opened: AsyncDisposable[] = [];
  for (const { name, api: load } of features) {
    if (load === undefined) continue;
    const api = await load();
    const own = await open(api, name);
    if (isDisposable(own)) opened.push(own);
    added.push((server, dependencies) => api.routes(server, dependencies, own));
  }
  return {
    added,
    async [Symbol.asyncDispose]() {
      await Promise.all(opened.map((one) => one[Symbol.asyncDispose]()));
    },
  };
}

function isDisposable(value: unknown): value is AsyncDisposable {
  return typeof value === 'object' && value !== null && Symbol.asyncDispose in value;
}

/** Starts what the features run with these roles, one after the other. */
export async function startFeatures(
  features: readonly Feature[],
  roles: readonly RoleName[],
  process: FeatureProcess,
  stack: AsyncDisposableStack,
): Promise<void> {
  for (const { starts = {} } of features)
    for (const role of roles) {
      const started = await starts[role]?.(process);
      if (started !== undefined && started !== null) stack.use(started);
    }
}
