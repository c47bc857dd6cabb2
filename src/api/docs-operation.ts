import { fieldsOf, typeOf, type Field } from './docs-fields.ts';
import { inline, sample, table } from './docs-table.ts';
import { html, type Html } from './html.ts';
import type { DocumentAnswer } from './docs/error-responses.ts';
import type { DocumentParameter, OpenApiDocument, Placed } from './docs/openapi.ts';

/** One operation: what it does and takes and answers on one side, a call of it on the other. */
export function operationSection(placed: Placed, document: OpenApiDocument, baseUrl: string): Html {
  const { path, method, operation } = placed;
  const { operationId, summary, description, parameters, requestBody, responses } = operation;
  const roles = operation['x-roles'];
  const body = requestBody?.content['application/json'];
  const [status = '', success] = Object.entries(responses)[0] ?? [];
  const [answer] = Object.values(success?.content ?? {});
  return html`<section id="${operationId}">
    <div class="text">
      <h3>${summary}</h3>
      <p class="path">${badge(method)} <code>${path}</code></p>
      ${description && html`<p>${inline(description)}</p>`}
      <p class="who">${roles ? `Roles: ${roles.join(', ')}` : 'No credential needed'}</p>
      ${table(
        'Parameters',
        parameters.map((one) => parameterField(one)),
      )}
      ${table('Body', body === undefined ? [] : fieldsOf(body.schema, document))}
      ${table(`Answer ${status}`, answer === undefined ? [] : fieldsOf(answer.schema, document))}
      ${table('Headers of the answer', headerFields(success))} ${errorList(responses)}
    </div>
    <div class="code">
      ${sample('Call', curlOf(placed, baseUrl))}
      ${answer?.example === undefined ? null : sample(`Answer ${status}`, pretty(answer.example))}
    </div>
  </section>`;
}

/** The operation's method as a coloured word. */
export function badge(method: string): Html {
  return html`<b class="method ${method}">${method.toUpperCase()}</b>`;
}

function parameterField({ name, in: place, required, description, schema }: DocumentParameter) {
  const fallback =
    schema.default === undefined ? '' : ` (${JSON.stringify(schema.default)} by default)`;
  return {
    name,
    type: `${typeOf(schema)} in ${place}`,
    isRequired: required,
    description: description + fallback,
  };
}

/** The headers that are this answer's own; those of every answer are told of once, at the top. */
function headerFields(answer: DocumentAnswer | undefined): Field[] {
  return Object.entries(answer?.headers ?? {}).flatMap(([name, { $ref, description, schema }]) =>
    $ref === undefined && schema !== undefined
      ? [{ name, type: typeOf(schema), isRequired: false, description: description ?? '' }]
      : [],
  );
}

function errorList(responses: Record<string, DocumentAnswer>): Html {
  const names = Object.entries(responses).flatMap(([status, { content }]) =>
    Object.keys(content['application/json']?.examples ?? {}).map(
      (name) =>
        html`<li>
          <b>${status}</b> <a href="#errors"><code>${name}</code></a>
        </li>`,
    ),
  );
  return html`<h4>Errors</h4>
    <ul class="errors">
      ${names}
    </ul>`;
}

/** A call that works as it stands: API_KEY, SESSION_ID and KEY_ID are the caller's to set. */
function curlOf({ path, method, operation }: Placed, baseUrl: string): string {
  const verb = method === 'get' ? '' : ` -X ${method.toUpperCase()}`;
  const target = path.replace('{id}', '$SESSION_ID').replace('{key_id}', '$KEY_ID');
  const isStream = Object.hasOwn(operation.responses['200']?.content ?? {}, 'text/event-stream');
  const lines = [`curl${isStream ? ' -N' : ''}${verb} "${baseUrl}${target}"`];
  if (operation.security.length > 0) lines.push('-H "Authorization: Bearer $API_KEY"');
  const body = operation.requestBody?.content['application/json'];
  if (body !== undefined)
    lines.push('-H "Content-Type: application/json"', `-d '${JSON.stringify(body.example)}'`);
  return lines.join(' \\\n  ');
}

function pretty(value: unknown): string {
  return JSON.stringify(value, null, 2);
}
