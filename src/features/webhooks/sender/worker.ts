import type { Webhook } from '#events/organization/webhook.ts';
import { createBackOff } from '#src/kernel/async/back-off.ts';
import { createNotifier } from '#src/kernel/async/notifier.ts';
import type { SenderDependencies } from './dependencies.ts';
import { openRun, Overtaken, type Run } from './run.ts';

/** Sends one webhook's events until it is disposed. */
export type Worker = {
  /** There may be something new. */
  wake(): void;
  /** The webhook has changed. */
  change(webhook: Webhook): void;
  /** Age of the oldest event that is not delivered, in ms; 0: there is none. */
  lagMs(): number;
  isFailing(): boolean;
} & AsyncDisposable;

/** @param hasLease whether this process sends */
export function startWorker(
  dependencies: SenderDependencies,
  organizationId: string,
  first: Webhook,
  hasLease: () => boolean,
): Worker {
  const stop = new AbortController();
  const { signal } = stop;
  const notifier = createNotifier();
  let webhook = first;
  let isWoken = true;
  let run: Run | null = null;
  const wake = () => {
    isWoken = true;
    notifier.notify();
  };
  const options = { organizationId, webhook: () => webhook, hasLease, wake, signal };

  async function work(): Promise<void> {
    const backOff = createBackOff();
    while (!signal.aborted) {
      try {
        run = await openRun(dependencies, options);
        while (!signal.aborted) {
          isWoken = false;
          await run.turn();
          backOff.reset();
          if (!isWoken) await notifier.wait(signal, run.idleMs());
        }
      } catch (error) {
        const { webhookId } = webhook;
        if (!signal.aborted && !(error instanceof Overtaken))
          dependencies.log.warn({ webhookId, err: error }, 'deliveries of a webhook wait');
      }
      await run?.settle();
      if (!signal.aborted) await backOff.pause(signal);
    }
  }
  const working = work();
  return {
    wake,
    change(changed) {
      webhook = changed;
      wake();
    },
    lagMs: () => run?.lagMs() ?? 0,
    isFailing: () => run?.isFailing() ?? false,
    async [Symbol.asyncDispose]() {
      stop.abort();
      wake();
      await working;
    },
  };
}
