/** The command line cannot be understood: exit code 2. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}

/** The command was interrupted, or lost its connection: exit code 1. */
export class InterruptedError extends Error {
  override readonly name = 'InterruptedError';
}
