import { hostname } from 'node:os';
import {
  ROOT_CONTEXT,
  SpanKind,
  SpanStatusCode,
  trace,
  TraceFlags,
  type Context,
  type Span as OpenSpan,
  type SpanContext,
  type Tracer as OpenTracer,
} from '@opentelemetry/api';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { resourceFromAttributes } from '@opentelemetry/resources';
import {
  AlwaysOnSampler,
  BatchSpanProcessor,
  ParentBasedSampler,
  TracerProvider,
  type SpanExporter,
} from '@opentelemetry/sdk-trace';
import packageJson from '../../../package.json' with { type: 'json' };
import { within } from '#src/kernel/async/timeout.ts';
import type { Logger } from './logger.ts';
import { isTraceparent, type Span, type Tracer, type TracingOptions } from './tracer.ts';

/** Most spans that wait to be sent; further ones are dropped. */
const QUEUE_MAX = 2_048;
const BATCH_MAX = 512;
/** A batch is sent at most this long after its first span. */
const SEND_AFTER_MS = 1_000;
/**
 * Timeout of one export, retries included; the batch is then dropped. A pending export delays the
 * end of the process by at most this.
 */
const SEND_WITHIN_MS = 2_000;
/** At the end of the process remaining spans are sent within this time, or dropped. */
const LAST_WITHIN_MS = 1_000;
/** Failures of the collector are logged at most this often. */
const WARN_EVERY_MS = 60_000;

const kinds = {
  server: SpanKind.SERVER,
  consumer: SpanKind.CONSUMER,
  internal: SpanKind.INTERNAL,
};

/**
 * Exports traces to a collector by OTLP over HTTP (JSON), in batches in the background. A sampling
 * decision of the caller is respected; all other traces are sampled. The exporter itself reads
 * further `OTEL_EXPORTER_OTLP_*` variables (headers, compression).
 */
export function createOtlpTracer(options: TracingOptions & { endpoint: string }): Tracer {
  const { endpoint, roles, log } = options;
  const url = `${endpoint}/v1/traces`;
  const exporter = new OTLPTraceExporter({ url, timeoutMillis: SEND_WITHIN_MS });
  const processor = new BatchSpanProcessor({
    exporter: withFailureWarnings(exporter, log),
    maxQueueSize: QUEUE_MAX,
    maxExportBatchSize: BATCH_MAX,
    scheduledDelayMillis: SEND_AFTER_MS,
    exportTimeoutMillis: 2 * SEND_WITHIN_MS,
  });
  const provider = new TracerProvider({
    sampler: new ParentBasedSampler({ root: new AlwaysOnSampler() }),
    resource: resourceFromAttributes({
      'service.name': packageJson.name,
      'service.version': packageJson.version,
      'service.instance.id': `${hostname()}:${process.pid}`,
      'bss.roles': roles,
    }),
    spanProcessors: [processor],
  });
  const tracer = provider.getTracer(packageJson.name, packageJson.version);
  return {
    begin: (name, { kind, parent, attributes = {} }) =>
      wrap(tracer, tracer.startSpan(name, { kind: kinds[kind], attributes }, contextOf(parent))),
    async [Symbol.asyncDispose]() {
      await within(LAST_WITHIN_MS, provider.shutdown()).catch(() => undefined);
    },
  };
}

function wrap(tracer: OpenTracer, span: OpenSpan): Span {
  const parts = new Set<Span>();
  let hasEnded = false;
  return {
    get traceparent() {
      return traceparentOf(span.spanContext());
    },
    begin(name, attributes = {}) {
      const part = tracer.startSpan(name, { attributes }, trace.setSpan(ROOT_CONTEXT, span));
      const wrapped = wrap(tracer, part);
      parts.add(wrapped);
      return wrapped;
    },
    note: (attributes) => void span.setAttributes(attributes),
    link(traceparent) {
      const context = spanContextOf(traceparent);
      if (context !== null) span.addLink({ context });
    },
    fail(error) {
      span.setStatus({ code: SpanStatusCode.ERROR, message: String(error).slice(0, 256) });
    },
    end() {
      if (hasEnded) return;
      hasEnded = true;
      for (const part of parts) part.end();
      span.end();
    },
  };
}

function traceparentOf({ traceId, spanId, traceFlags }: SpanContext): string {
  return `00-${traceId}-${spanId}-${traceFlags.toString(16).padStart(2, '0')}`;
}

function contextOf(parent: string | undefined): Context {
  const found = spanContextOf(parent);
  return found === null ? ROOT_CONTEXT : trace.setSpanContext(ROOT_CONTEXT, found);
}

function spanContextOf(traceparent: string | undefined): SpanContext | null {
  if (!isTraceparent(traceparent)) return null;
  const [, traceId = '', spanId = '', flags = ''] = traceparent.split('-');
  const traceFlags = Number.parseInt(flags, 16) & TraceFlags.SAMPLED;
  return { traceId, spanId, traceFlags, isRemote: true };
}

/** Logs a warning, at most once a minute, when traces cannot be sent. */
function withFailureWarnings(exporter: SpanExporter, log: Logger): SpanExporter {
  let warnedAt = -Infinity;
  let dropped = 0;
  return {
    export(spans, done) {
      exporter.export(spans, (result) => {
        const code: number = result.code;
        if (code !== 0) {
          dropped += spans.length;
          if (performance.now() - warnedAt > WARN_EVERY_MS) {
            warnedAt = performance.now();
            log.warn({ dropped, cause: String(result.error) }, 'trace export failed');
            dropped = 0;
          }
        }
        done(result);
      });
    },
    shutdown: () => exporter.shutdown(),
    forceFlush: async () => exporter.forceFlush?.(),
  };
}
