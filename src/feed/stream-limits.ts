/** Limits on the open streams of this process, and of one organization in it. */
export type StreamLimits = { clientsMax: number; clientsPerOrganizationMax: number };

export type StreamLimiter = {
  /** Counts one more stream; or says which limit is reached. */
  acquire(organizationId: string): 'organization-full' | 'process-full' | null;
  /** Counts one stream less. */
  release(organizationId: string): void;
};

export function createStreamLimiter({
  clientsMax,
  clientsPerOrganizationMax,
}: StreamLimits): StreamLimiter {
  const openOf = new Map<string, number>();
  let open = 0;
  return {
    acquire(organizationId) {
      const own = openOf.get(organizationId) ?? 0;
      if (own >= clientsPerOrganizationMax) return 'organization-full';
      if (open >= clientsMax) return 'process-full';
      openOf.set(organizationId, own + 1);
      open += 1;
      return null;
    },
    release(organizationId) {
      const own = openOf.get(organizationId) ?? 0;
      if (own <= 1) openOf.delete(organizationId);
      else openOf.set(organizationId, own - 1);
      open -= 1;
    },
  };
}
