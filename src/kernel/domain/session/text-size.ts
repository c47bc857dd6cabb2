import { reject, type Rejection } from '#src/kernel/errors.ts';

/** Every event of a session carries its description and labels, and so does its view. */
const TEXT_BYTES_MAX = 2_048;

/** The rejection of a description and labels that are too long together; null: they are not. */
export function tooMuchText({
  description = '',
  labels = {},
}: {
  description?: string;
  labels?: Record<string, string>;
}): Rejection | null {
  const bytes = {
    description: Buffer.byteLength(description),
    labels: Object.entries(labels)
      .flat()
      .reduce((sum, text) => sum + Buffer.byteLength(text), 0),
  };
  const sum = bytes.description + bytes.labels;
  if (sum <= TEXT_BYTES_MAX) return null;
  const field = bytes.labels > bytes.description ? 'labels' : 'description';
  return reject(
    'INVALID_REQUEST',
    { field, bytes, max_bytes: TEXT_BYTES_MAX },
    {
      message:
        `description (${bytes.description} bytes) and labels (${bytes.labels} bytes) have ${sum} ` +
        `bytes of UTF-8 together, and may have ${TEXT_BYTES_MAX}.`,
    },
  );
}
