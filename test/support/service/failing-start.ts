/** A process whose event store becomes unavailable just before its provisioner has started. */
import { Unavailable } from '#src/kernel/errors.ts';
import { openFleet } from './fleet.ts';

const away = async () => {
  throw new Unavailable('event-log');
};
await using fleet = await openFleet({ items: () => away });
await fleet.join().catch((error: unknown) => console.log(String(error)));
