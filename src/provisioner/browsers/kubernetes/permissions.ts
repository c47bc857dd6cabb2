import { messageOf, type Cluster } from './cluster.ts';

/**
 * What this adapter asks of the API server, all of it in the namespace of the browsers: the Role of
 * deploy/helm grants exactly this.
 */
export const PERMISSIONS: readonly { resource: string; verbs: readonly string[] }[] = [
  { resource: 'pods', verbs: ['create', 'delete', 'get', 'list', 'patch', 'watch'] },
  { resource: 'pods/log', verbs: ['get'] },
  // By WebSocket: a GET, for which newer API servers ask for `create` as well.
  { resource: 'pods/exec', verbs: ['create', 'get'] },
  // The browsers' own, made and deleted within a launch; none is read.
  { resource: 'secrets', verbs: ['create', 'delete', 'deletecollection'] },
];

/**
 * Asks the API server which of these permissions this process does not have.
 * @returns as `create pods/exec`
 * @throws Error where it does not answer
 */
export async function missingPermissions(cluster: Cluster): Promise<string[]> {
  const { AuthorizationV1Api } = await import('@kubernetes/client-node');
  const api = cluster.config.makeApiClient(AuthorizationV1Api);
  async function isMissing(verb: string, resource: string, subresource?: string) {
    const { namespace, bounded } = cluster;
    const resourceAttributes = { namespace, verb, resource, subresource: subresource ?? '' };
    const body = {
      apiVersion: 'authorization.k8s.io/v1',
      kind: 'SelfSubjectAccessReview',
      spec: { resourceAttributes },
    };
    const { status } = await api.createSelfSubjectAccessReview({ body }, bounded());
    return status?.allowed !== true;
  }
  const asked = PERMISSIONS.flatMap(({ resource, verbs }) =>
    verbs.map(async (verb) => {
      const [name = '', subresource] = resource.split('/');
      return (await isMissing(verb, name, subresource)) ? `${verb} ${resource}` : null;
    }),
  );
  try {
    return (await Promise.all(asked)).filter((one) => one !== null);
  } catch (error) {
    throw new Error(`permissions cannot be asked for: ${messageOf(error)}`, { cause: error });
  }
}
