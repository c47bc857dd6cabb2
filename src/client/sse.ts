/** A message of a stream of Server-Sent Events; absent fields are null. */
export type SseMessage = {
  id: string | null;
  event: string | null;
  data: string | null;
  /** Milliseconds to wait before reconnecting. */
  retry: string | null;
};

/** In UTF-16 units. The service's events have at most 1 MB. */
const MESSAGE_LENGTH_MAX = 4 * 1024 * 1024;

/**
 * Reads a stream of Server-Sent Events. A comment is a message without fields, which shows the
 * caller that the connection is alive.
 * @throws Error for a message longer than 4 MB
 */
export async function* readMessages(
  body: ReadableStream<Uint8Array>,
): AsyncGenerator<SseMessage, void, void> {
  const decoder = new TextDecoder();
  const reader = body.getReader();
  let rest = '';
  try {
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      rest += decoder.decode(value, { stream: true });
      const parts = rest.split(/\r?\n\r?\n/);
      rest = parts.pop() ?? '';
      if (rest.length > MESSAGE_LENGTH_MAX)
        throw new Error('not a stream of events: a message exceeds 4 MB');
      for (const part of parts) yield parse(part);
    }
  } finally {
    // Rejects if the connection is closed already.
    await reader.cancel().catch(() => undefined);
  }
}

function parse(text: string): SseMessage {
  const message: SseMessage = { id: null, event: null, data: null, retry: null };
  for (const line of text.split(/\r?\n/)) {
    const [, field, value = ''] = /^([a-z]+)(?:: ?(.*))?$/s.exec(line) ?? [];
    if (field === 'id' || field === 'event' || field === 'retry') message[field] = value;
    if (field === 'data')
      message.data = message.data === null ? value : `${message.data}\n${value}`;
  }
  return message;
}
