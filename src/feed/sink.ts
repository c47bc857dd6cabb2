/** Where a client's bytes go: an open answer of the API. */
export type Sink = {
  /** False where it is full: nothing more is to be written until it drains. */
  write(bytes: Buffer): boolean;
  /** Ends the answer, and cuts the connection where its reader does not take the rest in time. */
  end(lastBytes?: Buffer): void;
  onDrain(listener: () => void): void;
  /** Called once, however it ended and even if it had before; never before this returns. */
  onClose(listener: () => void): void;
};

/** A sink with what is known of its reader. */
export type Outlet = {
  write(bytes: Buffer): void;
  isFull(): boolean;
  /** Since when it takes no bytes (ms, monotonic); null: it does. */
  fullSince(): number | null;
  /** True once it takes bytes again, or nobody waits for them; false where not within the bound. */
  drained(withinMs: number): Promise<boolean>;
  /** Nobody will write any more: lets those go who wait. */
  release(): void;
};

export function createOutlet(sink: Sink, onDrained: () => void): Outlet {
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
      const timer = setTimeout(resolve, withinMs);
      wake = resolve;
      await promise;
      clearTimeout(timer);
      wake = null;
      return fullSince === null || isReleased;
    },
    release() {
      isReleased = true;
      wake?.();
    },
  };
}
