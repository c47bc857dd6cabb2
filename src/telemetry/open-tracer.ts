import type { Tracer, TracingOptions } from './tracer.ts';

/** Loads what traces take only where there is somebody to send them to. */
export async function openTracer(options: TracingOptions): Promise<Tracer | null> {
  const { endpoint } = options;
  if (endpoint === null) return null;
  const { createOtlpTracer } = await import('./trace-otlp.ts');
  return createOtlpTracer({ ...options, endpoint });
}
