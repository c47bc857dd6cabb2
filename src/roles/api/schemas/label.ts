import { Type } from 'typebox';
import type { Refusal } from '../http/validation.ts';

/** Labels of one request; each is one more list to intersect. */
export const LABELS_MAX = 8;

/** The query parameter `label=key=value`, repeated for several. */
export function labelParameter(description: string, refusal: Refusal) {
  const label = Type.String({ pattern: '^[^=]+=', examples: ['team=web'] });
  return Type.Optional(Type.Array(label, { maxItems: LABELS_MAX, description, refusal }));
}

/** The parts of `key=value`; the value may be empty. */
export function readLabel(text: string): readonly [name: string, value: string] {
  const at = text.indexOf('=');
  return [text.slice(0, at), text.slice(at + 1)];
}
