import type { Field } from './docs-fields.ts';
import { html, type Html } from './html.ts';

/** Longer tables are folded: the example beside them shows the same fields. */
const FIELDS_OPEN_MAX = 12;

/** Prose with `code` in it. */
export function inline(text: string): Html[] {
  return text
    .split('`')
    .map((part, at) => (at % 2 === 1 ? html`<code>${part}</code>` : html`${part}`));
}

/**
 * Fields with what is said of each; nothing where there are none. More than `openMax` are folded.
 */
export function table(
  title: string,
  fields: readonly Field[],
  openMax = FIELDS_OPEN_MAX,
): Html | null {
  if (fields.length === 0) return null;
  const rows = fields.map(
    ({ name, type, isRequired, description }) =>
      html`<tr>
        <td><code>${name}</code>${isRequired ? html`<em>required</em>` : null}</td>
        <td>${type}</td>
        <td>${inline(description)}</td>
      </tr>`,
  );
  const fieldTable = html`<div class="wide">
    <table>
      <tbody>
        ${rows}
      </tbody>
    </table>
  </div>`;
  if (fields.length <= openMax)
    return html`<h4>${title}</h4>
      ${fieldTable}`;
  return html`<details>
    <summary>${title}: ${fields.length} fields</summary>
    ${fieldTable}
  </details>`;
}

/** A text to copy. */
export function sample(title: string, text: string): Html {
  return html`<figure>
    <figcaption>${title}<button type="button">Copy</button></figcaption>
    <pre tabindex="0"><code>${text}</code></pre>
  </figure>`;
}
