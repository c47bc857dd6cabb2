import type { BrowserExit, ProfileSpec } from '../browsers.ts';

/** The end of a tar: an archive without a file. */
const EMPTY_TAR = Buffer.alloc(1024);

/** Profiles of simulated browsers: each has what it was launched with. */
export function createSimulatedProfiles() {
  const held = new Map<string, { tar: Buffer; isKept: boolean; isClosed: boolean }>();

  /** @returns whether it can be read from now on */
  function close(workloadId: string): boolean {
    const profile = held.get(workloadId);
    if (profile?.isKept !== true) return false;
    profile.isClosed = true;
    return true;
  }
  async function* readProfile(workloadId: string): AsyncGenerator<Uint8Array> {
    const profile = held.get(workloadId);
    if (profile === undefined) throw new Error(`${workloadId} has no profile here`);
    yield profile.tar;
  }
  return {
    port: { close: async (workloadId: string) => close(workloadId), readProfile },
    async fill(workloadId: string, spec: ProfileSpec | undefined): Promise<void> {
      if (spec === undefined) return;
      const chunks: Uint8Array[] = [];
      if (spec.tar !== null) for await (const chunk of spec.tar) chunks.push(chunk);
      const tar = chunks.length === 0 ? EMPTY_TAR : Buffer.concat(chunks);
      held.set(workloadId, { tar, isKept: spec.isKept, isClosed: false });
    },
    /** Where a close leaves the profile to be read; null: nothing is left. */
    keep: (workloadId: string, reason: BrowserExit['reason']) =>
      reason === 'browser_closed' && close(workloadId) ? { hasProfile: true } : null,
    remove: (workloadId: string) => void held.delete(workloadId),
  };
}
