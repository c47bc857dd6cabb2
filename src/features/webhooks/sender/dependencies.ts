import type { FairSlots } from '#src/kernel/async/fair-slots.ts';
import type { CommandContext } from '#src/commands/handle-command.ts';
import type { Logger } from '#src/kernel/telemetry/logger.ts';
import type { AddressRules } from '#src/features/webhooks/addresses.ts';
import type { Outcome } from '#src/features/webhooks/progress.ts';
import type { WebhookSecrets } from '#src/features/webhooks/signature.ts';
import type { WebhookRecords } from '#src/features/webhooks/webhook-records.ts';
import type { Send } from './send.ts';

/** What the deliveries of every webhook need. */
export type SenderDependencies = {
  context: CommandContext;
  records: WebhookRecords;
  secretsOf: WebhookSecrets['secretsOf'];
  rules: AddressRules;
  /** Slots of all sends of this process, shared fairly between organizations. */
  sendSlots: FairSlots;
  /** Slots of all reads of the event store, shared fairly between organizations. */
  readSlots: FairSlots;
  /** Pauses after failed attempts, in ms; default: those of `pauses.ts`. */
  pauses?: readonly number[];
  /** Between two probes of a webhook that waits as a whole, in ms; default: 5 minutes. */
  probeEveryMs?: number;
  /** Time limit of an attempt; default: 15 s. */
  timeoutMs?: number;
  /** Sends one delivery; default: over HTTP. */
  send?: Send;
  count: (outcome: Outcome) => void;
  log: Pick<Logger, 'info' | 'warn' | 'error'>;
};
