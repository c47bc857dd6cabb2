import type { Protocol } from 'chromium-bidi';

export type Command = Protocol.ChromiumBidi.Command;
/** The errors that are answered here; all others are the mapper's. */
export type BidiError =
  | 'invalid argument'
  | 'invalid session id'
  | 'session not created'
  | 'unknown command';
export type Refusal = { type: 'error'; id: number | null; error: BidiError; message: string };

/** A client's message as a command, or the answer to what is none (WebDriver BiDi, 4.1). */
export function parseCommand(text: string): { command: Command } | { refusal: Refusal } {
  let message: unknown;
  try {
    message = JSON.parse(text);
  } catch {
    return { refusal: refuse(null, 'The message is no JSON.') };
  }
  if (!isObject(message)) return { refusal: refuse(null, 'The message is no JSON object.') };
  const { id, method, params } = message;
  if (typeof id !== 'number' || !Number.isSafeInteger(id) || id < 0)
    return { refusal: refuse(null, 'The id is no whole number.') };
  if (typeof method !== 'string') return { refusal: refuse(id, 'The method is no string.') };
  if (!isObject(params)) return { refusal: refuse(id, 'The params are no object.') };
  return { command: message as Command };
}

export function refuse(
  id: number | null,
  message: string,
  error: BidiError = 'invalid argument',
): Refusal {
  return { type: 'error', id, error, message };
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
