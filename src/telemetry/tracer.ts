import type { Log } from './logger.ts';

export type Attributes = Readonly<Record<string, string | number | boolean>>;

/** What something took, and what it was a part of. */
export type Span = {
  /** W3C Trace Context, for what it leads to elsewhere. */
  readonly traceparent: string;
  /** Begins a part of it. */
  begin(name: string, attributes?: Attributes): Span;
  note(attributes: Attributes): void;
  /** What else it has to do with, as a traceparent; one that is none is left out. */
  link(traceparent: string): void;
  /** It has failed. */
  fail(error: unknown): void;
  /** Ends it, and the parts of it that have not ended. Again is nothing. */
  end(): void;
};

/**
 * Where traces are begun and carried on. Whoever has none (null) does nothing for it: no trace, no
 * module, no allocation.
 */
export type Tracer = AsyncDisposable & {
  /** @param parent a traceparent; absent, or none that is valid: a trace of its own begins */
  begin(name: string, options: BeginOptions): Span;
};

export type BeginOptions = {
  kind: 'server' | 'consumer' | 'internal';
  parent?: string | undefined;
  attributes?: Attributes;
};

export type TracingOptions = {
  /** Address of a collector, OTLP over HTTP; null: no traces. */
  endpoint: string | null;
  /** Of this process. */
  roles: string;
  log: Log;
};

/** Loads what traces take only where there is somebody to send them to. */
export async function openTracer(options: TracingOptions): Promise<Tracer | null> {
  const { endpoint } = options;
  if (endpoint === null) return null;
  const { createOtlpTracer } = await import('./trace-otlp.ts');
  return createOtlpTracer({ ...options, endpoint });
}

/** Version 00, ids of which none is all zero. */
const TRACEPARENT = /^00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}$/;

/** Whether it is a traceparent as we write it; of what else there is nothing is made. */
export function isTraceparent(text: unknown): text is string {
  return typeof text === 'string' && TRACEPARENT.test(text);
}
