export declare function knownOf(
  root: string,
  what: { name: string; files: readonly string[] },
  find: () => string | null,
): string | null;
