import { createHash } from 'node:crypto';
import Fastify from 'fastify';
import { prepareDocument, type PreparedDocument } from './prepared-document.ts';

/** The documents as pages for people, rendered in the browser by Scalar. */
export type ReferencePages = Record<keyof typeof documents | 'script', PreparedDocument>;

export const SCRIPT_PATH = '/docs/scalar.js';

/**
 * Addresses are relative to the page, `/docs` or `/docs/events`: a proxy may have the service below
 * a path.
 */
const documents = {
  openapi: {
    document: 'api/openapi.json',
    script: 'docs/scalar.js',
    title: 'Browser Session Service API',
  },
  asyncapi: {
    document: '../api/asyncapi.json',
    script: 'scalar.js',
    title: 'Browser Session Service: events',
  },
} as const;

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
} as const;

/** The script's validator would try `new Function`, which the policy refuses and reports. */
const PRELUDE = 'globalThis.__zod_globalConfig = { jitless: true };\n';

/**
 * Loads Scalar, whose 5 MB take some 300 ms: once, at the first request of a page. Its plugin runs
 * in a server of its own. As routes of the API, every start would load its pages.
 */
export async function loadReferencePages(): Promise<ReferencePages> {
  const { default: reference } = await import('@scalar/fastify-api-reference');
  await using server = Fastify();
  const url = documents.openapi.document;
  server.register(reference, { routePrefix: '/docs', configuration: { url } });
  const { body: script } = await server.inject(SCRIPT_PATH.replace('/docs/', '/docs/js/'));
  const page = (name: keyof typeof documents) => {
    const html = pageOf(documents[name]);
    return prepareDocument(html, pageHeaders(html));
  };
  return {
    openapi: await page('openapi'),
    asyncapi: await page('asyncapi'),
    script: await prepareDocument(PRELUDE + script, {
      'content-type': 'text/javascript; charset=utf-8',
    }),
  };
}

/** A page that gives Scalar the document, whose relative servers Scalar does not understand. */
function pageOf({ document, script, title }: (typeof documents)[keyof typeof documents]): string {
  return `<!doctype html>
<html lang="en">
  <head>
    <title>${title}</title>
    <meta charset="utf-8" />
    <meta name="viewport" content="width=device-width, initial-scale=1" />
  </head>
  <body>
    <div id="app"></div>
    <script src="${script}"></script>
    <script type="text/javascript">
      const url = new URL('${document}', location.href);
      function show(content) {
        for (const server of [content.servers].flat())
          if ('url' in server) server.url = new URL(server.url, url).href.replace(/\\/$/, '');
        Scalar.createApiReference('#app', { ...${JSON.stringify(SETTINGS)}, content });
      }
      function fail(error) {
        document.getElementById('app').textContent = url + ' cannot be read: ' + error;
      }
      fetch(url)
        .then((answer) => (answer.ok ? answer.json() : Promise.reject(answer.status)))
        .then(show)
        .catch(fail);
    </script>
  </body>
</html>
`;
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
