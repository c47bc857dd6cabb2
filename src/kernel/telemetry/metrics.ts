import { monitorEventLoopDelay } from 'node:perf_hooks';
import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } from 'prom-client';
import type { ErrorName } from '#src/kernel/errors.ts';
import { within } from '#src/kernel/async/timeout.ts';
import {
  families,
  type CreatePhase,
  type Family,
  type FamilyName,
  type FamilyOwner,
} from './metric-families.ts';

/** A metric's value, or its values by label value; null: not known. */
export type Reading = number | Readonly<Record<string, number>> | null;
export type Readings = Partial<Record<FamilyName, Reading>>;

/**
 * The metrics of this process. Recording a metric of a role that the process does not have is
 * ignored. The recording functions never throw and never block.
 */
export type Metrics = {
  createPhase(phase: CreatePhase, ms: number): void;
  refused(error: ErrorName): void;
  sessionStarted(start: 'warm' | 'cold'): void;
  browserLaunched(outcome: 'launched' | 'failed', ms: number): void;
  screenshotMade(outcome: 'made' | 'failed', ms: number): void;
  gatewayRefused(status: number): void;
  webhookDelivery(outcome: 'delivered' | 'failed' | 'gone' | 'lost'): void;
  webdriverCommand(outcome: 'ok' | 'error' | 'unanswered'): void;
  /**
   * Registers a function that reads metrics at each scrape. If it throws or takes longer than 3 s,
   * its metrics are exported as NaN for that scrape.
   */
  watch(gives: readonly FamilyName[], read: () => Readings | Promise<Readings>): void;
  /** All metrics in Prometheus' text format 0.0.4. */
  text(): Promise<string>;
};

/** A read of the read model takes at most 1 s, of the event store 2 s. */
const READ_MS_MAX = 3_000;
/**
 * Sampling interval of the event loop; only what exceeds it counts as delay. Each sample wakes the
 * process: at 100 ms a scrape has some 150 of them, and they say what a moment by chance waits.
 */
const LOOP_RESOLUTION_MS = 100;
/** Timers have no longer period. */
const NEVER_MS = 2 ** 31 - 1;

/** @param owners the owners whose metrics this process exports, in addition to `process` */
export function openMetrics(options: { roles: string; owners: readonly FamilyOwner[] }): Metrics {
  const registry = new Registry();
  // Its own samples of the event loop would wake the process a hundred times a second.
  collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision: NEVER_MS });
  for (const part of ['min', 'max', 'mean', 'stddev', 'p50', 'p90', 'p99'])
    registry.removeSingleMetric(`nodejs_eventloop_lag_${part}_seconds`);
  const found = register(registry, [...options.owners, 'process']);
  const watched: { gives: readonly FamilyName[]; read: () => Readings | Promise<Readings> }[] = [];
  const loop = watchLoop();

  function count(name: FamilyName, value: string): void {
    const metric = found.get(name);
    if (metric instanceof Counter) metric.inc(labelled(name, value));
  }
  function observe(name: FamilyName, value: string, ms: number): void {
    const metric = found.get(name);
    if (metric instanceof Histogram) metric.observe(labelled(name, value), Math.max(0, ms) / 1000);
  }
  function show(readings: Readings): void {
    for (const [name, reading] of Object.entries(readings) as [FamilyName, Reading][]) {
      const metric = found.get(name);
      if (metric instanceof Gauge || metric instanceof Counter) put(metric, name, reading);
    }
  }
  async function readAll(): Promise<void> {
    await Promise.all(
      watched.map(async ({ gives, read }) => {
        const unknown = Object.fromEntries(gives.map((name) => [name, null])) as Readings;
        show({ ...unknown, ...(await readOrNone(read)) });
      }),
    );
    show({ bss_event_loop_delay_seconds: loop.take() });
  }
  let reading: Promise<void> | null = null;
  async function text(): Promise<string> {
    // Concurrent scrapes share one read.
    reading ??= readAll().finally(() => (reading = null));
    await reading;
    return registry.metrics();
  }
  show({ bss_process_info: { [options.roles]: 1 } });
  return {
    createPhase: (phase, ms) => observe('bss_create_phase_seconds', phase, ms),
    refused: (error) => count('bss_refusals_total', error),
    sessionStarted: (start) => count('bss_session_starts_total', start),
    browserLaunched: (outcome, ms) => observe('bss_browser_launch_seconds', outcome, ms),
    screenshotMade: (outcome, ms) => observe('bss_screenshot_seconds', outcome, ms),
    gatewayRefused: (status) => count('bss_gateway_refusals_total', `${status}`),
    webhookDelivery: (outcome) => count('bss_webhook_deliveries_total', outcome),
    webdriverCommand: (outcome) => count('bss_gateway_webdriver_commands_total', outcome),
    watch: (gives, read) => void watched.push({ gives, read }),
    text,
  };
}

type AnyMetric = Counter | Gauge | Histogram;

function register(registry: Registry, owners: readonly FamilyOwner[]): Map<FamilyName, AnyMetric> {
  const own = (Object.entries(families) as [FamilyName, Family][]).filter(([, { of }]) =>
    of.some((owner) => owners.includes(owner)),
  );
  return new Map(own.map(([name, family]) => [name, begin(registry, name, family)]));
}

/** Counters start at 0 for each label value, so that Prometheus sees the first increment. */
function begin(registry: Registry, name: FamilyName, family: Family): AnyMetric {
  const { help, label, buckets } = family;
  const labelNames = label === undefined ? [] : [label.name];
  const config = { name, help, labelNames, registers: [registry] };
  if (family.kind === 'histogram')
    return new Histogram({ ...config, buckets: [...(buckets ?? [])] });
  if (family.kind === 'gauge') return new Gauge(config);
  const counter = new Counter(config);
  for (const labels of everyLabel(family)) counter.inc(labels, 0);
  return counter;
}

/** All known label sets: one without labels, or one for each fixed value. */
function everyLabel({ label }: Family): Record<string, string>[] {
  if (label === undefined) return [{}];
  const { name, values } = label;
  return typeof values === 'string' ? [] : values.map((value) => ({ [name]: value }));
}

/** Sets a gauge to the value read; also a counter whose total is counted elsewhere. */
function put(metric: Gauge | Counter, name: FamilyName, reading: Reading): void {
  metric.reset();
  const set = (labels: Record<string, string>, value: number) =>
    metric instanceof Gauge ? metric.set(labels, value) : metric.inc(labels, value);
  if (typeof reading === 'object' && reading !== null)
    for (const [value, number] of Object.entries(reading)) set(labelled(name, value), number);
  else if (reading !== null) set({}, reading);
  else if (metric instanceof Gauge)
    for (const labels of everyLabel(families[name])) metric.set(labels, Number.NaN);
}

function labelled(name: FamilyName, value: string): Record<string, string> {
  const { label }: Family = families[name];
  return label === undefined ? {} : { [label.name]: value };
}

/** Empty if the read throws or takes longer than READ_MS_MAX. */
async function readOrNone(read: () => Readings | Promise<Readings>): Promise<Readings> {
  try {
    return await within(READ_MS_MAX, Promise.resolve(read()));
  } catch {
    return {};
  }
}

/** Event loop delay in seconds since the previous `take`. */
function watchLoop(): { take(): Record<'mean' | 'p99' | 'max', number> } {
  const delays = monitorEventLoopDelay({ resolution: LOOP_RESOLUTION_MS });
  delays.enable();
  // The histogram has the time between samples, so subtract the sampling interval.
  const late = (ns: number) =>
    Number.isFinite(ns) ? Math.max(0, ns / 1e6 - LOOP_RESOLUTION_MS) / 1000 : 0;
  return {
    take() {
      const taken = {
        mean: late(delays.mean),
        p99: late(delays.percentile(99)),
        max: late(delays.max),
      };
      delays.reset();
      return taken;
    },
  };
}
