import type { SenderDependencies } from './dependencies.ts';

/** Records of webhooks that were removed while no process sent. */
export type Orphans = {
  /** Notes whose records there are, once; before the organizations are read. */
  list(): Promise<void>;
  /**
   * Removes those of webhooks of this process's parts that no organization has. All organizations
   * have been read; without a list nothing is removed.
   */
  forget(): Promise<void>;
  /** Whose records there were at the start and are not removed. */
  webhookIds(): Iterable<string>;
};

type Parts = Pick<SenderDependencies, 'records' | 'log'> & {
  /** Whether the webhook has no organization, and this process serves its part. */
  isOrphan: (webhookId: string) => boolean;
};

export function createOrphans({ records, log, isOrphan }: Parts): Orphans {
  /** A webhook is in its organization before it has records: none that is added later is here. */
  let listed: Set<string> | null = null;
  return {
    async list() {
      if (listed !== null) return;
      try {
        listed = new Set(await records.webhookIds());
      } catch (error) {
        log.warn({ err: error }, 'records of removed webhooks stay until the next start');
        listed = new Set();
      }
    },
    async forget() {
      for (const webhookId of [...(listed ?? [])].filter(isOrphan)) {
        listed?.delete(webhookId);
        await forgetRecords({ records, log }, webhookId);
      }
    },
    webhookIds: () => listed ?? [],
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
