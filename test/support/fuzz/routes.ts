import { PAGES } from '#src/roles/api/dashboard/pages.ts';
import type { DocumentOperation, OpenApiDocument } from '#src/roles/api/docs/openapi-document.ts';
import { EXAMPLES, type Example } from './examples.ts';
import { gatewayRoutes } from './gateway-routes.ts';
import { jsonBody, partsOf } from './parts.ts';
import { protocolRoutes } from './protocol-routes.ts';
import type { Random } from './random.ts';
import { commonHeaders, type Route } from './route.ts';
import { hostileText, nearly } from './values.ts';

/** The routes of the document, and those that it does not describe. */
export function routesOf(document: OpenApiDocument): Route[] {
  const described = Object.entries(document.paths).flatMap(([template, methods]) =>
    Object.entries(methods).map(([method, operation]) =>
      describedRoute(document, { template, method: method.toUpperCase(), operation }),
    ),
  );
  return [...described, ...pageRoutes(), ...protocolRoutes(), ...gatewayRoutes()];
}

type Described = { template: string; method: string; operation: DocumentOperation };

function describedRoute(
  document: OpenApiDocument,
  { template, method, operation }: Described,
): Route {
  const example: Example = EXAMPLES[operation.operationId] ?? {};
  return {
    name: `${method} ${template}`,
    at: 'api',
    documented: new Set(Object.keys(operation.responses).map(Number)),
    success: example.success ?? 'ok',
    needs: example.needs ?? 'any',
    request(random, world) {
      const ids = [...(example.ids?.(world) ?? ['none', 'none'])];
      const path = template.replace(/\{[^}]+\}/g, () => encodeURIComponent(ids.shift() ?? 'none'));
      const usual = template.startsWith('/api/operator') ? world.operatorToken : world.key;
      const key = example.key?.(world) ?? usual;
      const body = example.body?.(random, world) ?? bodyOf(random, document, operation);
      return partsOf({
        method,
        path,
        query: example.query?.(random) ?? queryOf(random, operation),
        headers: [
          ...commonHeaders(random),
          ['authorization', `Bearer ${key}`],
          ...(operation.operationId === 'createSession' ? ASYNC : []),
          ...(body === null ? [] : [TYPE]),
        ],
        body,
      });
    },
  };
}

const ASYNC: [string, string][] = [['prefer', 'respond-async']];
const TYPE: [string, string] = ['content-type', 'application/json'];

/** Values that fit the schema of each parameter. */
function queryOf(random: Random, { parameters }: DocumentOperation): [string, string][] {
  const asked = parameters.filter((one) => one.in === 'query' && random.chance(0.25));
  return asked.map(({ name, schema }) => {
    const value = nearly(random, schema, 0.05);
    const text = typeof value === 'string' ? value : (JSON.stringify(value) ?? '');
    return [name, encodeURIComponent(text.toWellFormed())];
  });
}

/** The document's example, half of the times with fields added, changed or removed. */
function bodyOf(
  random: Random,
  { components }: OpenApiDocument,
  { requestBody }: DocumentOperation,
): Buffer | null {
  const content = requestBody?.content['application/json'];
  if (content === undefined) return null;
  const name = content.schema.$ref?.split('/').at(-1) ?? '';
  const fields = Object.entries(components.schemas[name]?.properties ?? {});
  const body: Record<string, unknown> = { ...(content.example as object) };
  while (fields.length > 0 && random.chance(0.3)) {
    const [field, schema] = random.pick(fields);
    body[field] = nearly(random, schema, 0.2);
  }
  if (fields.length > 0 && random.chance(0.1)) delete body[random.pick(fields)[0]];
  if (random.chance(0.05)) body[hostileText(random)] = 1;
  return jsonBody(body).body;
}

const ASSET = '/assets/{file}';

/** The dashboard, the pages of the reference and their files. */
function pageRoutes(): Route[] {
  const pages = Object.values(PAGES).map(({ path }) => path.replace(':id', 'ses_any'));
  return [...new Set([...pages, ASSET, '/docs/scalar.js'])].map((path) => ({
    name: `GET ${path}`,
    at: 'api',
    documented: null,
    success: 'ok',
    needs: 'any',
    request: (random, { asset }) =>
      partsOf({ path: path === ASSET ? asset : path, headers: commonHeaders(random) }),
  }));
}
