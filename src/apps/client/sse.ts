/** A message of a stream of Server-Sent Events, or a comment; absent fields are null. */
export type SseMessage = {
  id: string | null;
  event: string | null;
  data: string | null;
  /** Milliseconds to wait before reconnecting. */
  retry: string | null;
};

const EMPTY: SseMessage = { id: null, event: null, data: null, retry: null };
/** In UTF-16 units. The service's events have at most 1 MB. */
const MESSAGE_LENGTH_MAX = 4 * 1024 * 1024;

/**
 * Reads a stream of Server-Sent Events. A comment, also one within a message, is a message without
 * fields when it arrives: it shows the caller that the connection is alive.
 * @throws Error for a message longer than 4 MB
 */
export async function* readMessages(
  body: ReadableStream<Uint8Array>,
): AsyncGenerator<SseMessage, void, void> {
  const decoder = new TextDecoder();
  const reader = body.getReader();
  let rest = '';
  let [message, length] = [EMPTY, 0];
  try {
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      const lines = (rest + decoder.decode(value, { stream: true })).split(/\r?\n/);
      rest = lines.pop() ?? '';
      for (const line of lines) {
        if (line.startsWith(':')) yield EMPTY;
        else if (line !== '') [message, length] = [withField(message, line), length + line.length];
        else {
          if (message !== EMPTY) yield message;
          [message, length] = [EMPTY, 0];
        }
      }
      if (rest.length + length > MESSAGE_LENGTH_MAX)
        throw new Error('not a stream of events: a message exceeds 4 MB');
    }
  } finally {
    // Rejects if the connection is closed already.
    await reader.cancel().catch(() => undefined);
  }
}

function withField(message: SseMessage, line: string): SseMessage {
  const [, field, value = ''] = /^([a-z]+)(?:: ?(.*))?$/s.exec(line) ?? [];
  if (field === 'id' || field === 'event' || field === 'retry')
    return { ...message, [field]: value };
  if (field !== 'data') return message;
  return { ...message, data: message.data === null ? value : `${message.data}\n${value}` };
}
