import type { SenderDependencies } from './dependencies.ts';

/** Records of webhooks that were removed while no process sent. */
export type Orphans = {
  /** Notes whose records there are, once; before the organizations are read. */
  list(): Promise<void>;
  /**
   * Removes those of webhooks that no organization has. All organizations have been read; without a
   * list nothing is removed.
   */
  forget(isKnown: (webhookId: string) => boolean): Promise<void>;
  /** Whether there are records that have not been looked at. */
  areLeft(): boolean;
};

export function createOrphans({
  records,
  log,
}: Pick<SenderDependencies, 'records' | 'log'>): Orphans {
  /** A webhook is in its organization before it has records: none that is added later is here. */
  let listed: readonly string[] | null = null;
  return {
    async list() {
      if (listed !== null) return;
      try {
        listed = await records.webhookIds();
      } catch (error) {
        log.warn({ err: error }, 'records of removed webhooks stay until the next start');
        listed = [];
      }
    },
    async forget(isKnown) {
      const orphans = (listed ?? []).filter((webhookId) => !isKnown(webhookId));
      listed = [];
      for (const webhookId of orphans) await forgetRecords({ records, log }, webhookId);
    },
    areLeft: () => (listed ?? []).length > 0,
  };
}

/** Removes the records of a webhook that is removed. Never rejects. */
export async function forgetRecords(
  { records, log }: Pick<SenderDependencies, 'records' | 'log'>,
  webhookId: string,
): Promise<void> {
  await records.forget(webhookId).catch((error: unknown) => {
    log.warn({ webhookId, err: error }, 'records of a removed webhook stay');
  });
}
