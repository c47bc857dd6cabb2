import { createHash } from 'node:crypto';
import Fastify from 'fastify';
import { prepareDocument, type PreparedDocument } from './prepared-document.ts';

/** The documents as pages for people, rendered in the browser by Scalar. */
export type ReferencePages = Record<keyof typeof documents | 'script', PreparedDocument>;

const documents = {
  openapi: { url: '/api/openapi.json', pageTitle: 'Browser Session Service API' },
  asyncapi: { url: '/api/asyncapi.json', pageTitle: 'Browser Session Service: events' },
} as const;

export const SCRIPT_PATH = '/docs/scalar.js';

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
} as const;

/** The script's validator would try `new Function`, which the policy refuses and reports. */
const PRELUDE = 'globalThis.__zod_globalConfig = { jitless: true };\n';

/**
 * Loads Scalar, whose 5 MB take some 300 ms: once, at the first request of a page. Its plugin runs
 * in a server of its own. As routes of the API, every start would load its pages, and each request
 * would render them.
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
  const page = async (name: keyof typeof documents) => {
    const html = await read(`/${name}/`);
    return prepareDocument(html, pageHeaders(html));
  };
  return {
    openapi: await page('openapi'),
    asyncapi: await page('asyncapi'),
    script: await prepareDocument(PRELUDE + (await read('/openapi/js/scalar.js')), {
      'content-type': 'text/javascript; charset=utf-8',
    }),
  };
}

/**
 * The page's own script is allowed by its hash, so that the page is the same for every request.
 * Styles are allowed inline: Scalar sets `style` attributes, which no hash can allow.
 */
function pageHeaders(html: string): Record<string, string> {
  const own = [...html.matchAll(/<script(?![^>]*\ssrc=)[^>]*>([^]*?)<\/script>/g)];
  const hashes = own.map(
    ([, script = '']) => `'sha256-${createHash('sha256').update(script).digest('base64')}'`,
  );
  return {
    'content-type': 'text/html; charset=utf-8',
    'content-security-policy':
      `default-src 'none'; script-src 'self' ${hashes.join(' ')}; style-src 'unsafe-inline'; ` +
      "connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; " +
      "frame-ancestors 'none'",
    'referrer-policy': 'no-referrer',
  };
}
