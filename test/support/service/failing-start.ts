/** A process whose provisioner has all but started when the log goes away. */
import { Unavailable } from '#src/errors.ts';
import { openFleet } from './fleet.ts';

await using fleet = await openFleet();
fleet.desk.log.inbox = async () => {
  throw new Unavailable('event-log');
};
await fleet.join().catch((error: unknown) => console.log(String(error)));
