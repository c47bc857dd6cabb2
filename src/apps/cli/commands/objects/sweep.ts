import { AnotherEventStore, adoptObjects } from '#src/kernel/objects/sweep/bucket-owner.ts';
import { sweepWithLease, type Sweep } from '#src/kernel/objects/sweep/sweep-objects.ts';
import { reject } from '#src/kernel/errors.ts';
import type { Command } from '../../command.ts';
import { interruptible } from '../../interruptible.ts';

export const sweepObjectsCommand: Command = {
  read(options) {
    const isDryRun = !options.has('remove');
    const permissions = {
      isDryRun,
      unknown: options.has('unknown'),
      beyondLimit: options.has('beyond-limit') || isDryRun,
    };
    const adopts = options.has('adopt');
    return async ({ context, openObjectSweep, warn }) => {
      const dependencies = await openObjectSweep();
      if (adopts) await adoptObjects({ ...dependencies, eventStore: context.eventStore });
      const tell = (error: unknown, what: string) => warn(`${what}: ${String(error)}`);
      const swept = await interruptible((signal) =>
        sweepWithLease(dependencies, signal, tell, permissions),
      ).catch((error: unknown) => {
        if (!(error instanceof AnotherEventStore)) throw error;
        return reject('UNAVAILABLE', {}, { message: error.message });
      });
      if (swept === null)
        return reject('UNAVAILABLE', {}, { message: 'Another process sweeps the objects.' });
      if ('code' in swept) return swept;
      return { json: jsonOf(swept), text: linesOf(swept, isDryRun).join('\n') };
    };
  },
};

function jsonOf({ heldBack, ...counts }: Sweep) {
  return { ...counts, held_back: heldBack };
}

function linesOf(swept: Sweep, isDryRun: boolean): string[] {
  const { groups, over, removed, unknown, heldBack, failed } = swept;
  const lines = [`${groups} groups of objects, ${over} of them are over`];
  if (isDryRun) lines.push('nothing was removed: --remove removes what is over');
  else lines.push(`${removed} objects removed`);
  if (unknown > 0)
    lines.push(`${unknown} are unknown to the event store and stay: --unknown removes them, too`);
  if (heldBack > 0)
    lines.push(`${heldBack} stay, since they are too many at once: --beyond-limit removes them`);
  if (failed > 0) lines.push(`${failed} could not be judged or removed`);
  return lines;
}
