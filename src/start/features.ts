import type { RoleName } from '#src/kernel/config/config.ts';
import type { Feature, FeatureApi, FeatureProcess } from '#src/features/feature.ts';
import type { AddRoutes } from '#src/roles/api/routes.ts';

/** Loads the routes of the features. @param open what a feature's routes need of this process */
export async function loadRoutes(
  features: readonly Feature[],
  open: (api: FeatureApi, name: string) => unknown,
): Promise<AddRoutes[]> {
  const loads = features.flatMap(({ name, api }) =>
    api === undefined ? [] : [{ name, load: api }],
  );
  return Promise.all(
    loads.map(async ({ name, load }) => {
      const api = await load();
      const own = await open(api, name);
      return (server, dependencies) => api.routes(server, dependencies, own);
    }),
  );
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
