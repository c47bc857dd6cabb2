import type { DriverAddress } from '#src/browsers/link/browser-link.ts';

/**
 * Of what a client asks of the driver, this alone is passed on. Everything else would choose a
 * program, its arguments, its folders or its network, and the browser runs already.
 */
const PASSED_ON = [
  'acceptInsecureCerts',
  'pageLoadStrategy',
  'strictFileInteractability',
  'timeouts',
  'unhandledPromptBehavior',
  'goog:loggingPrefs',
] as const;

/** The body of New Session that attaches the driver to the session's own browser. */
export function attachTo({ cdpPort }: DriverAddress, asked: unknown): string {
  const wanted = alwaysMatchOf(asked);
  const kept = PASSED_ON.filter((name) => name in wanted).map((name) => [name, wanted[name]]);
  const alwaysMatch = {
    ...(Object.fromEntries(kept) as Record<string, unknown>),
    'goog:chromeOptions': { debuggerAddress: `127.0.0.1:${cdpPort}` },
  };
  return JSON.stringify({ capabilities: { alwaysMatch } });
}

function alwaysMatchOf(asked: unknown): Record<string, unknown> {
  const capabilities = fieldOf(asked, 'capabilities');
  const found = fieldOf(capabilities, 'alwaysMatch');
  return typeof found === 'object' && found !== null ? { ...found } : {};
}

function fieldOf(value: unknown, name: string): unknown {
  if (typeof value !== 'object' || value === null) return undefined;
  return (value as Record<string, unknown>)[name];
}
