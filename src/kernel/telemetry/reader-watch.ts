/**
 * The readers of this process, and for how long each has been without a sign of life: a message, a
 * heartbeat of the server, or the answer to a pull. Healthy readers get one every few seconds. A
 * process without the others' events keeps its last knowledge and looks healthy from outside.
 */
export type ReaderWatch = {
  /** @param name the stream, and the consumer if it is durable: `EVENTS`, `EVENTS/provisioner` */
  add: (name: string, silenceMs: () => number) => void;
  /** Seconds since the last sign of life, by reader. */
  silences(): Record<string, number>;
};

export function createReaderWatch(): ReaderWatch {
  const readers = new Map<string, () => number>();
  return {
    add: (name, silenceMs) => void readers.set(name, silenceMs),
    silences: () =>
      Object.fromEntries([...readers].map(([name, silenceMs]) => [name, silenceMs() / 1000])),
  };
}
