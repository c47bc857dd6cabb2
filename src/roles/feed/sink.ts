import { within } from '#src/kernel/async/timeout.ts';

/** Port: the byte stream to a client. The API implements it with an open HTTP response. */
export type Sink = {
  /** False if the buffer is full: write no more until it drains. */
  write(bytes: Buffer): boolean;
  /** Ends the response, and cuts the connection if the reader does not take the rest in time. */
  end(lastBytes?: Buffer): void;
  onDrain(listener: () => void): void;
  /** Called once, also if the sink has closed already; never before `onClose` returns. */
  onClose(listener: () => void): void;
};

/** A sink that tracks whether its reader takes bytes. */
export type BufferedSink = {
  write(bytes: Buffer): void;
  isFull(): boolean;
  /** Since when the reader takes no bytes (ms, monotonic); null: it takes them. */
  fullSince(): number | null;
  /** True once the reader takes bytes or the sink was released; false after `withinMs`. */
  drained(withinMs: number): Promise<boolean>;
  /** No more bytes will be written: resolves a pending `drained`. */
  release(): void;
};

export function createBufferedSink(sink: Sink, onDrained: () => void): BufferedSink {
  let fullSince: number | null = null;
  let isReleased = false;
  let wake: (() => void) | null = null;

  sink.onDrain(() => {
    fullSince = null;
    wake?.();
    if (!isReleased) onDrained();
  });
  return {
    write(bytes) {
      if (!sink.write(bytes)) fullSince ??= performance.now();
    },
    isFull: () => fullSince !== null,
    fullSince: () => fullSince,
    async drained(withinMs) {
      if (fullSince === null || isReleased) return true;
      const { promise, resolve } = Promise.withResolvers<void>();
      wake = resolve;
      await within(withinMs, promise, () => undefined);
      wake = null;
      return fullSince === null || isReleased;
    },
    release() {
      isReleased = true;
      wake?.();
    },
  };
}
