import { filtersFor } from '#events/subjects.ts';
import { objectWritersOf, writers, writersOf, type Writer } from '#events/writers.ts';

/** Writers in the account READERS, from which their events cross over. */
const READERS: readonly Writer[] = ['gateway'];

function eventsOf(writer: Writer): string[] {
  const types = Object.keys(writersOf).filter((type) => writersOf[type]?.includes(writer));
  return types.flatMap((type) => filtersFor(null, type));
}

function objectsOf(writer: Writer): string[] {
  const kinds = Object.keys(objectWritersOf).filter((kind) =>
    objectWritersOf[kind]?.includes(writer),
  );
  return kinds.map((kind) => `obj.*.${kind}.>`);
}

/** The parts of deploy/nats.conf that say who writes what. */
export function natsParts(): Record<string, string[]> {
  const crossing = READERS.flatMap(eventsOf);
  const own = writers.flatMap((writer) => [
    [`events of ${writer}`, eventsOf(writer)] as const,
    [`objects of ${writer}`, objectsOf(writer)] as const,
  ]);
  return {
    ...Object.fromEntries(
      own
        .filter(([, subjects]) => subjects.length > 0)
        .map(([name, subjects]) => [name, subjects.map((subject) => `"${subject}"`)]),
    ),
    'exports to readers': crossing.map(
      (subject) => `{ service: "${subject}", accounts: [READERS] }`,
    ),
    'imports of readers': crossing.map(
      (subject) => `{ service: { account: SERVICE, subject: "${subject}" } }`,
    ),
  };
}
