/** The version in what `--version` prints, as `Chromium 150.0.7871.100 built on …`; null: none. */
export function parseVersion(output: string): string | null {
  return /\b\d+(\.\d+){3}\b/.exec(output)?.[0] ?? null;
}
