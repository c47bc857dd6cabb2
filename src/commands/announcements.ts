/** Requests that an organization's ledger queue may expect. */
export type Announcements = {
  /** @returns to be called once the request has come, or will not come; again: nothing happens */
  announce(organizationId: string): () => void;
  /** Waits until all that is announced has come, for the time limit at most; null: nothing is. */
  whenComplete(organizationId: string): Promise<void> | null;
};

/** @param waitMs longest wait, also if further requests are announced meanwhile */
export function createAnnouncements(waitMs: number): Announcements {
  type Expected = { count: number; complete: PromiseWithResolvers<void> };
  const all = new Map<string, Expected>();
  return {
    announce(organizationId) {
      const expected = all.get(organizationId) ?? {
        count: 0,
        complete: Promise.withResolvers<void>(),
      };
      all.set(organizationId, expected);
      expected.count += 1;
      let isOver = false;
      return () => {
        if (isOver) return;
        isOver = true;
        expected.count -= 1;
        if (expected.count > 0) return;
        all.delete(organizationId);
        expected.complete.resolve();
      };
    },
    whenComplete(organizationId) {
      const expected = all.get(organizationId);
      if (expected === undefined) return null;
      const limit = Promise.withResolvers<void>();
      const timer = setTimeout(limit.resolve, waitMs);
      const { promise } = expected.complete;
      return Promise.race([promise, limit.promise]).finally(() => clearTimeout(timer));
    },
  };
}
