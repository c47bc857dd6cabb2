import type { Protocol } from 'chromium-bidi';

type Command = Protocol.ChromiumBidi.Command;
type Refusal = { type: 'error'; id: number | null; error: 'invalid argument'; message: string };

/** A client's message as a command, or the answer to what is none (WebDriver BiDi, 4.1). */
export function parseCommand(text: string): { command: Command } | { refusal: Refusal } {
  let message: unknown;
  try {
    message = JSON.parse(text);
  } catch {
    return refuse(null, 'The message is no JSON.');
  }
  if (!isObject(message)) return refuse(null, 'The message is no JSON object.');
  const { id, method, params } = message;
  if (typeof id !== 'number' || !Number.isSafeInteger(id) || id < 0)
    return refuse(null, 'The id is no whole number.');
  if (typeof method !== 'string') return refuse(id, 'The method is no string.');
  if (!isObject(params)) return refuse(id, 'The params are no object.');
  return { command: message as Command };
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function refuse(id: number | null, message: string): { refusal: Refusal } {
  return { refusal: { type: 'error', id, error: 'invalid argument', message } };
}
