/**
 * A message of Server-Sent Events. The type `end` tells why the service ends the stream, and has no
 * position of its own.
 */
export type Message = { id: string; type: string; data: string };

/**
 * Splits the text of a stream of Server-Sent Events into its messages, in whatever parts it
 * arrives. Comments, such as heartbeats, are no messages.
 */
export function createMessageParser(): (text: string) => Message[] {
  let rest = '';
  return (text) => {
    const blocks = (rest + text).split('\n\n');
    rest = blocks.pop() ?? '';
    return blocks.flatMap((block) => {
      const fields = new Map(block.split('\n').map(fieldOf));
      const [id = '', type = '', data] = ['id', 'event', 'data'].map((name) => fields.get(name));
      return data === undefined ? [] : [{ id, type, data }];
    });
  };
}

function fieldOf(line: string): [name: string, value: string] {
  const colon = line.indexOf(':');
  if (colon === -1) return [line, ''];
  return [line.slice(0, colon), line.slice(colon + 1).replace(/^ /, '')];
}
