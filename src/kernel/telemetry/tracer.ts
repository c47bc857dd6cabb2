import type { Logger } from './logger.ts';

export type Attributes = Readonly<Record<string, string | number | boolean>>;

/** A span of a trace. */
export type Span = {
  /** W3C Trace Context, to continue the trace elsewhere. */
  readonly traceparent: string;
  /** Begins a child span. */
  begin(name: string, attributes?: Attributes): Span;
  note(attributes: Attributes): void;
  /** Links another span by its traceparent; an invalid one is ignored. */
  link(traceparent: string): void;
  /** Marks the span as failed. */
  fail(error: unknown): void;
  /** Ends the span and its open children. Idempotent. */
  end(): void;
};

/**
 * Begins and continues traces. Without a tracer (null) tracing costs nothing: no module is loaded
 * and nothing is allocated.
 */
export type Tracer = AsyncDisposable & {
  /** @param parent a traceparent; if absent or invalid, a new trace begins */
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
  /** Roles of this process. */
  roles: string;
  log: Logger;
};

/** Version 00; neither id is all zeros. */
const TRACEPARENT = /^00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}$/;

/** Whether the value is a valid traceparent of version 00; others are ignored. */
export function isTraceparent(text: unknown): text is string {
  return typeof text === 'string' && TRACEPARENT.test(text);
}
