import { messageOf, type Cluster } from './cluster.ts';

export type Permission = {
  resource: string;
  verbs: readonly string[];
  /** The one object that it is of; absent: all of the namespace. */
  name?: string;
};

/**
 * What this adapter asks of the API server, all of it in the namespace of the browsers: the Role of
 * deploy/helm grants exactly this, there alone.
 * @param owner the ConfigMap that owns the browsers
 */
export function permissionsFor(owner: string | null): Permission[] {
  return [
    { resource: 'pods', verbs: ['create', 'delete', 'get', 'list', 'patch', 'watch'] },
    { resource: 'pods/log', verbs: ['get'] },
    // By WebSocket: a GET, for which newer API servers ask for `create` as well.
    { resource: 'pods/exec', verbs: ['create', 'get'] },
    // The browsers' own, made and deleted within a launch; none is read.
    { resource: 'secrets', verbs: ['create', 'delete'] },
    ...(owner === null ? [] : [{ resource: 'configmaps', verbs: ['get'], name: owner }]),
  ];
}

/**
 * Asks the API server which of these permissions this process does not have.
 * @returns as `create pods/exec`
 * @throws Error where it does not answer
 */
export async function missingPermissions(
  cluster: Cluster,
  owner: string | null,
): Promise<string[]> {
  const { AuthorizationV1Api } = await import('@kubernetes/client-node');
  const api = cluster.config.makeApiClient(AuthorizationV1Api);
  async function isMissing(verb: string, resource: string, subresource = '', name = '') {
    const { namespace, bounded } = cluster;
    const resourceAttributes = { namespace, verb, resource, subresource, name };
    const body = {
      apiVersion: 'authorization.k8s.io/v1',
      kind: 'SelfSubjectAccessReview',
      spec: { resourceAttributes },
    };
    const { status } = await api.createSelfSubjectAccessReview({ body }, bounded());
    return status?.allowed !== true;
  }
  const asked = permissionsFor(owner).flatMap(({ resource, verbs, name }) =>
    verbs.map(async (verb) => {
      const [kind = '', subresource] = resource.split('/');
      return (await isMissing(verb, kind, subresource, name)) ? `${verb} ${resource}` : null;
    }),
  );
  try {
    return (await Promise.all(asked)).filter((one) => one !== null);
  } catch (error) {
    throw new Error(`permissions cannot be asked for: ${messageOf(error)}`, { cause: error });
  }
}
