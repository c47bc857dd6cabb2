/** The command line cannot be understood: exit code 2. */
export class Misuse extends Error {
  override readonly name = 'Misuse';
}

/** There is no service to talk to, or it broke off: exit code 1. */
export class NoService extends Error {
  override readonly name = 'NoService';
}
