/** The bounds on streams of this process, and of one organization in it. */
export type SeatLimits = { clientsMax: number; clientsPerOrganizationMax: number };

export type Seats = {
  /** Takes one; else which bound is reached. */
  take(organizationId: string): 'organization-full' | 'process-full' | null;
  /** Gives back one that was taken. */
  free(organizationId: string): void;
};

export function createSeats({ clientsMax, clientsPerOrganizationMax }: SeatLimits): Seats {
  const taken = new Map<string, number>();
  let all = 0;
  return {
    take(organizationId) {
      const own = taken.get(organizationId) ?? 0;
      if (own >= clientsPerOrganizationMax) return 'organization-full';
      if (all >= clientsMax) return 'process-full';
      taken.set(organizationId, own + 1);
      all += 1;
      return null;
    },
    free(organizationId) {
      const own = taken.get(organizationId) ?? 0;
      if (own <= 1) taken.delete(organizationId);
      else taken.set(organizationId, own - 1);
      all -= 1;
    },
  };
}
