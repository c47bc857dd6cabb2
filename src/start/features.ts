import type { RoleName } from '#src/kernel/config/config.ts';
import type {
  Feature,
  FeatureApi,
  FeatureProcess,
  ServerAddition,
  ServerProcess,
} from '#src/features/feature.ts';
import type { ApiAddition } from '#src/roles/api/routes.ts';

/** What the features add to the API, with what has been opened for them. */
export type Additions = {
  added: ApiAddition[];
  /** Ends what is under way in them, while the API's open requests end. */
  end(): Promise<void>;
} & Disposable;

/** Loads the routes of the features. @param open what a feature's routes need of this process */
export async function loadRoutes(
  features: readonly Feature[],
  open: (api: FeatureApi, name: string) => unknown,
): Promise<Additions> {
  const added: ApiAddition[] = [];
  const ending: AsyncDisposable[] = [];
  const held = new DisposableStack();
  const loaded = features.map(async ({ name, api }) => ({ name, api: await api?.() }));
  for (const { name, api } of await Promise.all(loaded)) {
    if (api === undefined) continue;
    const own = await open(api, name);
    if (isAsyncDisposable(own)) ending.push(own);
    if (isDisposable(own)) held.use(own);
    const routes: ApiAddition['routes'] = (server, core) => api.routes(server, core, own);
    added.push({ routes, ...(api.dialect && { dialect: api.dialect }) });
  }
  return {
    added,
    async end() {
      await Promise.all(ending.map((one) => one[Symbol.asyncDispose]()));
    },
    [Symbol.dispose]: () => held.dispose(),
  };
}

function isAsyncDisposable(value: unknown): value is AsyncDisposable {
  return typeof value === 'object' && value !== null && Symbol.asyncDispose in value;
}

function isDisposable(value: unknown): value is Disposable {
  return typeof value === 'object' && value !== null && Symbol.dispose in value;
}

/** Opens what the features add to a server of browsers, in their order. */
export async function openServerAdditions(
  features: readonly Feature[],
  process: ServerProcess,
  stack: AsyncDisposableStack,
): Promise<ServerAddition[]> {
  const additions: ServerAddition[] = [];
  const loaded = await Promise.all(features.map(async ({ server }) => server?.()));
  for (const open of loaded) {
    if (open === undefined) continue;
    const addition = await open(process);
    additions.push(addition);
    stack.defer(() => addition[Symbol.asyncDispose]?.());
  }
  return additions;
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
