import { Type } from 'typebox';

/** Labels that one request may ask for; each is one more list to intersect. */
export const LABELS_MAX = 8;

const LABEL_PATTERN = '^[^=]+=';
const label = new RegExp(LABEL_PATTERN);

/** The parameter as it is documented: `label=key=value`, again for several. */
export const labelSchema = Type.Array(
  Type.String({ pattern: LABEL_PATTERN, examples: ['team=web'] }),
  { maxItems: LABELS_MAX },
);

/** `key=value`, the value maybe empty; null for anything else. */
export function readLabel(text: string): readonly [name: string, value: string] | null {
  if (!label.test(text)) return null;
  const at = text.indexOf('=');
  return [text.slice(0, at), text.slice(at + 1)];
}
