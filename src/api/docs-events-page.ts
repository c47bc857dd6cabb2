import type { PageAssets } from './docs-assets.ts';
import { fieldsOf, type Field } from './docs-fields.ts';
import { inline, sample, table } from './docs-table.ts';
import { html, type Html } from './html.ts';
import type { DocumentSchema } from './openapi-schema.ts';

type Message = {
  name: string;
  summary: string;
  tags: { name: string }[];
  'x-emitted-by': string;
  examples: { payload: Record<string, unknown> }[];
};

/** The AsyncAPI document, as far as the page shows it. */
export type EventsDocument = {
  asyncapi: string;
  info: {
    title: string;
    version: string;
    description: string;
    tags: { name: string; description: string }[];
  };
  servers: Record<string, { description: string }>;
  channels: Record<string, { address: string; description: string; servers: { $ref: string }[] }>;
  components: {
    schemas: Record<string, DocumentSchema>;
    messages: Record<string, Message>;
  };
};

const ENDS = 'type=session.stopped&type=session.failed&label=team=web';

/** The events' document as a page for people, in the likeness of the API's. */
export function eventsPage(document: EventsDocument, baseUrl: string, own: PageAssets): string {
  const { info } = document;
  const page = html`<!doctype html>
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <meta name="color-scheme" content="light dark" />
        <title>${info.title}</title>
        ${own.style}
      </head>
      <body>
        ${navigation(document)}
        <main>
          <header>
            <h1>${info.title} <small>${info.version}</small></h1>
            ${info.description.split('\n\n').map((paragraph) => html`<p>${inline(paragraph)}</p>`)}
            <p>
              As a document <a href="/api/asyncapi.json">AsyncAPI ${document.asyncapi}</a>; the API
              itself is at <a href="/docs">/docs</a>.
            </p>
          </header>
          <h2 id="hearing">Hearing of them</h2>
          ${overHttp(document, baseUrl)} ${byNats(document)} ${envelope(document)}
          ${info.tags.map(
            ({ name, description }) =>
              html`<h2 id="${name}">${name}</h2>
                <p>${inline(description)}</p>
                ${messagesOf(document, name).map((one) => eventSection(one, document))}
                ${stateSection(name, document)}`,
          )}
        </main>
        ${own.script}
      </body>
    </html>`;
  return page.html;
}

/** Those in structured form: the binary ones say the same. */
function messagesOf({ components }: EventsDocument, kind: string): Message[] {
  return Object.entries(components.messages)
    .filter(([key, { name, tags }]) => key === name && tags[0]?.name === kind)
    .map(([, message]) => message);
}

function navigation(document: EventsDocument): Html {
  const groups = document.info.tags.map(({ name }) => {
    const links = messagesOf(document, name).map(
      (one) => html`<a href="#${one.name}"><span>${one.name}</span></a>`,
    );
    return html`<strong>${name}</strong>${links}`;
  });
  return html`<nav>
    <a class="title" href="#">Events</a>
    <strong>Hearing of them</strong>
    <a href="#http"><span>Over HTTP</span></a>
    <a href="#nats"><span>By NATS</span></a>
    <a href="#envelope"><span>The envelope</span></a>
    ${groups}
  </nav>`;
}

function overHttp({ channels }: EventsDocument, baseUrl: string): Html {
  const stream = 'curl -N -H "Authorization: Bearer $API_KEY" \\\n  ';
  const calls = [
    `# what comes from now on\n${stream}${baseUrl}/api/events`,
    `# all there is, then what comes\n${stream}-H "Last-Event-ID: 0" ${baseUrl}/api/events`,
    `# what ends, of the sessions with a label\n${stream}"${baseUrl}/api/events?${ENDS}"`,
    `# one session's life\n${stream}${baseUrl}/api/sessions/$SESSION_ID/events`,
  ];
  const shown = [
    ': events of acme, from behind 1233\nretry: 1500\nid: 1233',
    'id: 1234\nevent: session.activated\ndata: {"specversion":"1.0","type":"session.activated", …}',
    ': heartbeat',
  ];
  return html`<section id="http">
    <div class="text">
      <h3>Over HTTP</h3>
      ${['organizationStream', 'sessionStream'].map(
        (name) =>
          html`<p class="path">
              <b class="method get">GET</b> <code>/api${channels[name]?.address}</code>
            </p>
            <p>${inline(channels[name]?.description ?? '')}</p>`,
      )}
    </div>
    <div class="code">
      ${sample('Calls', calls.join('\n\n'))} ${sample('What comes', shown.join('\n\n'))}
    </div>
  </section>`;
}

function byNats({ channels, servers }: EventsDocument): Html {
  const rows = Object.values(channels)
    .filter((one) => one.servers[0]?.$ref === '#/servers/nats')
    .map(({ address, description }) => ({
      name: address,
      type: '',
      isRequired: false,
      description,
    }));
  const subjects = channels['sessionSubjects']?.address
    .replace('{organizationId}', '$ORGANIZATION_ID')
    .replace('{sessionId}.{event}', '>');
  const listen = `nats subscribe "${subjects}" \\\n  --user live --password "$API_KEY"`;
  return html`<section id="nats">
    <div class="text">
      <h3>By NATS</h3>
      <p>${inline(servers['nats']?.description ?? '')}</p>
      ${table('Subjects', rows)}
    </div>
    <div class="code">${sample('Call', listen)}</div>
  </section>`;
}

function envelope(document: EventsDocument): Html {
  const schema = document.components.schemas['CloudEvent'] ?? {};
  return html`<section id="envelope">
    <div class="text">
      <h3>The envelope</h3>
      <p>${inline(schema.description ?? '')}</p>
      ${table('Attributes', fieldsOf(schema, document), Infinity)}
    </div>
    <div class="code"></div>
  </section>`;
}

function eventSection(message: Message, document: EventsDocument): Html {
  const { name, summary, examples } = message;
  const example = examples[0]?.payload ?? {};
  const kind = message.tags[0]?.name ?? '';
  return html`<section id="${name}">
    <div class="text">
      <h3>${name}</h3>
      <p>${inline(summary)}</p>
      <p class="who">Recorded by: ${inline(message['x-emitted-by'])}</p>
      ${table('Data', fieldsOf(document.components.schemas[name] ?? {}, document))}
      <p class="who"><a href="#${kind}-state">state after it</a></p>
    </div>
    <div class="code">${sample('Example', JSON.stringify(example, null, 2))}</div>
  </section>`;
}

/** The state that every event of an aggregate carries: the fields of all its shapes together. */
function stateSection(kind: string, document: EventsDocument): Html {
  const name = `${kind[0]?.toUpperCase()}${kind.slice(1)}State`;
  const schema = document.components.schemas[name] ?? {};
  const shapes = schema.anyOf ?? [schema];
  const byName = new Map<string, Field>();
  for (const field of shapes.flatMap((shape) => fieldsOf(shape, document))) {
    const known = byName.get(field.name);
    const types = new Set([...(known?.type.split(' or ') ?? []), ...field.type.split(' or ')]);
    byName.set(field.name, { ...field, ...known, type: [...types].join(' or ') });
  }
  return html`<section id="${kind}-state">
    <div class="text">
      <h3>state</h3>
      <p>What every event of a ${kind} carries: what is true of it after the event.</p>
      ${table('Fields', [...byName.values()])}
    </div>
    <div class="code"></div>
  </section>`;
}
