import { errors, type ErrorName } from '../errors.ts';
import { badge, operationSection } from './docs-operation.ts';
import { inline } from './docs-table.ts';
import type { PageAssets } from './docs-assets.ts';
import { html, type Html } from './html.ts';
import type { OpenApiDocument, Placed } from './docs/openapi.ts';
import { problemContexts } from './docs/problem-contexts.ts';

/**
 * The document as a page for people: whole in itself, nothing is loaded from anywhere.
 * @param baseUrl what the examples call, without a slash at its end
 * @param own its style and script, as elements
 */
export function docsPage(document: OpenApiDocument, baseUrl: string, own: PageAssets): string {
  const { info } = document;
  const placed = operationsOf(document);
  const page = html`<!doctype html>
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <meta name="color-scheme" content="light dark" />
        <title>${info.title} API</title>
        ${own.style}
      </head>
      <body>
        ${navigation(document, placed)}
        <main>
          <header>
            <h1>${info.title} <small>${info.version}</small></h1>
            ${info.description.split('\n\n').map((paragraph) => html`<p>${inline(paragraph)}</p>`)}
            <p>
              Base address <code>${baseUrl}</code>, as a document
              <a href="/api/openapi.json">OpenAPI ${document.openapi}</a>. What happens can be
              followed as events: <a href="/docs/events">/docs/events</a>.
            </p>
          </header>
          ${document.tags.map(
            ({ name, description }) =>
              html`<h2 id="${name}">${name}</h2>
                <p>${inline(description)}</p>
                ${placed
                  .filter(({ operation }) => operation.tags.includes(name))
                  .map((one) => operationSection(one, document, baseUrl))}`,
          )}
          ${errorTable()}
        </main>
        ${own.script}
      </body>
    </html>`;
  return page.html;
}

function operationsOf({ paths }: OpenApiDocument): Placed[] {
  return Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ path, method, operation })),
  );
}

function navigation({ info, tags }: OpenApiDocument, placed: readonly Placed[]): Html {
  const groups = tags.map(({ name }) => {
    const links = placed
      .filter(({ operation }) => operation.tags.includes(name))
      .map(
        ({ method, operation: { operationId, summary } }) =>
          html`<a href="#${operationId}">${badge(method)}<span>${summary}</span></a>`,
      );
    return html`<strong>${name}</strong>${links}`;
  });
  return html`<nav>
    <a class="title" href="#">${info.title}</a>${groups}<strong>Reference</strong
    ><a href="#errors"><span>Errors</span></a>
  </nav>`;
}

/** All errors there are; each operation names those that it may answer with. */
function errorTable(): Html {
  const rows = Object.entries(errors).map(
    ([name, { status, message }]) =>
      html`<tr>
        <td>${status}</td>
        <td><code>${name}</code></td>
        <td>${message}</td>
        <td>${contextOf(name as ErrorName)}</td>
      </tr>`,
  );
  return html`<h2 id="errors">Errors</h2>
    <p>
      The body is <code>{"error", "message", "code", "context"}</code>: <code>code</code> is the
      HTTP status, <code>context</code> holds what the last column shows.
      <code>Retry-After</code> is there where a retry may help.
    </p>
    <div class="wide">
      <table>
        <thead>
          <tr>
            <th>Status</th>
            <th>error</th>
            <th>message</th>
            <th>context, for example</th>
          </tr>
        </thead>
        <tbody>
          ${rows}
        </tbody>
      </table>
    </div>`;
}

function contextOf(name: ErrorName): Html | null {
  const context = problemContexts[name];
  return Object.keys(context).length === 0 ? null : html`<code>${JSON.stringify(context)}</code>`;
}
