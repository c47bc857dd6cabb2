import { once } from 'node:events';
import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text as readText } from 'node:stream/consumers';

/** A span as a collector receives it. */
export type CollectedSpan = {
  traceId: string;
  spanId: string;
  /** Empty: the span begins the trace. */
  parentSpanId: string;
  name: string;
  links: { traceId: string; spanId: string }[];
  attributes: Record<string, unknown>;
  /** The attributes of its process. */
  roles: string;
};

/** A collector of traces, OTLP over HTTP in JSON, with the features that the tests need. */
export type Collector = AsyncDisposable & {
  endpoint: string;
  spans(): CollectedSpan[];
  /** Requests from now on are read and not answered, until `answer`. */
  hang(): void;
  answer(): void;
};

export async function startCollector(): Promise<Collector> {
  const collected: CollectedSpan[] = [];
  const held: ServerResponse[] = [];
  let isHanging = false;
  const server: Server = createServer((request, response) => {
    void readText(request).then((body) => {
      if (request.url !== '/v1/traces') return response.writeHead(404).end();
      collected.push(...spansOf(JSON.parse(body)));
      if (isHanging) return held.push(response);
      return response.writeHead(200, { 'content-type': 'application/json' }).end('{}');
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    endpoint: `http://127.0.0.1:${port}`,
    spans: () => [...collected],
    hang() {
      isHanging = true;
    },
    answer() {
      isHanging = false;
      for (const response of held.splice(0)) response.writeHead(200).end('{}');
    },
    async [Symbol.asyncDispose]() {
      const closed = once(server, 'close');
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}

type Pair = { key: string; value: Record<string, unknown> };
type Sent = {
  resourceSpans: {
    resource: { attributes: Pair[] };
    scopeSpans: {
      spans: (Omit<CollectedSpan, 'attributes' | 'roles' | 'parentSpanId' | 'links'> & {
        parentSpanId?: string;
        links?: CollectedSpan['links'];
        attributes: Pair[];
      })[];
    }[];
  }[];
};

function spansOf({ resourceSpans }: Sent): CollectedSpan[] {
  return resourceSpans.flatMap(({ resource, scopeSpans }) =>
    scopeSpans.flatMap(({ spans }) =>
      spans.map(({ traceId, spanId, parentSpanId = '', name, links = [], attributes }) => ({
        traceId,
        spanId,
        parentSpanId,
        name,
        links: links.map((link) => ({ traceId: link.traceId, spanId: link.spanId })),
        attributes: valuesOf(attributes),
        roles: String(valuesOf(resource.attributes)['bss.roles']),
      })),
    ),
  );
}

function valuesOf(pairs: readonly Pair[]): Record<string, unknown> {
  return Object.fromEntries(pairs.map(({ key, value }) => [key, Object.values(value)[0]]));
}
