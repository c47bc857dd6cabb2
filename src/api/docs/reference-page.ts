import { randomBytes } from 'node:crypto';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import Fastify from 'fastify';

/** The documents as pages for people, rendered in the browser by Scalar. */
export type ReferencePages = {
  /** The page of a document, for one request: its nonce allows its own scripts and no others. */
  page(document: keyof typeof documents): { html: string; headers: Record<string, string> };
  /** The script of both pages, compressed by gzip. */
  script: Buffer;
};

const documents = {
  openapi: { url: '/api/openapi.json', pageTitle: 'Browser Session Service API' },
  asyncapi: { url: '/api/asyncapi.json', pageTitle: 'Browser Session Service: events' },
} as const;

export const SCRIPT_PATH = '/docs/scalar.js';
const NONCE = 'NONCE-OF-THE-REQUEST';

/** No other address: no fonts, telemetry, hosted client or assistant. */
const SETTINGS = {
  withDefaultFonts: false,
  telemetry: false,
  hideClientButton: true,
  agent: { disabled: true },
  mcp: { disabled: true },
  showDeveloperTools: 'never',
  persistAuth: false,
  orderSchemaPropertiesBy: 'preserve',
  cdn: SCRIPT_PATH,
  nonce: NONCE,
} as const;

/** The script's validator would try `new Function`, which the policy refuses and reports. */
const PRELUDE = 'globalThis.__zod_globalConfig = { jitless: true };\n';

/**
 * Loads Scalar, whose 5 MB take some 200 ms: once, at the first request of a page. Its plugin runs
 * in a server of its own. As routes of the API its pages would have no nonce per request, and every
 * start would load them.
 */
export async function loadReferencePages(): Promise<ReferencePages> {
  const { default: reference } = await import('@scalar/fastify-api-reference');
  await using server = Fastify();
  for (const [name, document] of Object.entries(documents))
    server.register(reference, {
      routePrefix: `/${name}`,
      configuration: { ...SETTINGS, ...document },
    });
  const read = async (path: string) => (await server.inject(path)).body;
  const pages = { openapi: await read('/openapi/'), asyncapi: await read('/asyncapi/') };
  const script = await promisify(gzip)(PRELUDE + (await read('/openapi/js/scalar.js')));
  return {
    page(document) {
      const nonce = randomBytes(16).toString('base64url');
      return { html: pages[document].replaceAll(NONCE, nonce), headers: pageHeaders(nonce) };
    },
    script,
  };
}

/** Styles are allowed inline: Scalar sets `style` attributes, which no nonce can allow. */
function pageHeaders(nonce: string): Record<string, string> {
  return {
    'content-type': 'text/html; charset=utf-8',
    'content-security-policy':
      `default-src 'none'; script-src 'nonce-${nonce}'; style-src 'unsafe-inline'; ` +
      "connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; " +
      "frame-ancestors 'none'",
    'referrer-policy': 'no-referrer',
    'x-content-type-options': 'nosniff',
  };
}
