import type { RecordedEvent } from '#events/events.ts';
import type { Webhook } from '#events/organization/webhook.ts';
import { laneOf } from '#src/features/webhooks/body.ts';
import { complete } from '#src/features/webhooks/complete-event.ts';
import { grantedPause, pauseAfter } from '#src/features/webhooks/pauses.ts';
import { asked, probeFailed, probing, recovered } from '#src/features/webhooks/probes.ts';
import {
  done,
  dueAt,
  failed,
  follow,
  newProgress,
  nextDue,
  oldestOpen,
  opened,
  roomOf,
  type Lane,
  type Progress,
} from '#src/features/webhooks/progress.ts';
import {
  lostId,
  type AttemptRecord,
  type StoredProgress,
} from '#src/features/webhooks/webhook-records.ts';
import { deliver, disable } from './deliver.ts';
import type { SenderDependencies } from './dependencies.ts';
import { READ_SPAN, readOn, readOne, startOf } from './read-events.ts';
import type { SendResult } from './send.ts';

/** Another process has written the progress: what is in memory is outdated. */
export class Overtaken extends Error {
  override readonly name = 'Overtaken';
}

export type RunOptions = {
  organizationId: string;
  /** The webhook as it is now. */
  webhook: () => Webhook;
  /** Whether this process sends now. */
  hasLease: () => boolean;
  /** Asks for another turn. */
  wake: () => void;
  signal: AbortSignal;
};

/** Deliveries of one webhook at once. */
export const SENDS_PER_WEBHOOK = 4;
/** Events that are kept in memory until they are sent; others are read again. */
const FRESH_MAX = 100;
/** A webhook that nothing wakes looks for itself this often. */
const LOOK_MS = 60_000;
/** A position that moves without a delivery is stored this often. */
const POSITION_EVERY_MS = 30_000;

/** @throws Unavailable if the progress cannot be read */
export async function openRun(dependencies: SenderDependencies, options: RunOptions): Promise<Run> {
  const { context, records } = dependencies;
  const { webhookId } = options.webhook();
  const { progress, revision } = await records.load(webhookId);
  const start = async () => newProgress(await startOf(context, options.organizationId, webhookId));
  return new Run(dependencies, options, { progress: progress ?? (await start()), revision });
}

/** The deliveries of a webhook from one load of its progress on. */
export class Run {
  readonly #all: SenderDependencies;
  readonly #options: RunOptions;
  #progress: Progress;
  #revision: number;
  #isDirty = false;
  #storedAt: number;
  /** The webhook's `starts` when this run disabled it: its event is not here yet. */
  #disabledAt: number | null = null;
  readonly #fresh = new Map<number, RecordedEvent>();
  /** By lane. */
  readonly #sending = new Map<string, Promise<void>>();

  constructor(
    dependencies: SenderDependencies,
    options: RunOptions,
    { progress, revision }: StoredProgress & { progress: Progress },
  ) {
    this.#all = dependencies;
    this.#options = options;
    this.#progress = progress;
    this.#revision = revision;
    this.#storedAt = this.#now();
  }

  /** Reads on, begins what is due, stores what is done. @throws Overtaken, Unavailable */
  async turn(): Promise<void> {
    const webhook = this.#options.webhook();
    const followed = follow(this.#progress, webhook);
    if (followed !== this.#progress) {
      this.#fresh.clear();
      this.#set(followed);
    }
    if (!this.#isDisabled(webhook) && this.#options.hasLease()) {
      await this.#read(webhook);
      const sending = [...this.#sending.keys()];
      this.#progress = probing(this.#progress, sending, this.#all.probeEveryMs);
      this.#begin();
    }
    await this.#store();
  }

  /** Until the next attempt is due, in ms. */
  idleMs(): number {
    if (this.#isDisabled(this.#options.webhook()) || this.#sending.size >= SENDS_PER_WEBHOOK)
      return LOOK_MS;
    const due = nextDue(this.#progress, [...this.#sending.keys()]);
    return due === null ? LOOK_MS : Math.min(LOOK_MS, Math.max(0, due - this.#now()));
  }

  /** Age of the oldest event that is not delivered, in ms. */
  lagMs(): number {
    const oldest = oldestOpen(this.#progress);
    return oldest === null || this.#isDisabled(this.#options.webhook()) ? 0 : this.#now() - oldest;
  }

  isFailing(): boolean {
    return this.#progress.failingSince !== null;
  }

  /** Waits for the sends that are under way, and stores what they came to. */
  async settle(): Promise<void> {
    await Promise.allSettled(this.#sending.values());
    // If another process has stored something, that is newer.
    await this.#store().catch(() => undefined);
  }

  #now(): number {
    return this.#all.context.now();
  }

  #set(progress: Progress): void {
    this.#progress = progress;
    this.#isDirty = true;
  }

  #isDisabled({ disabled, starts }: Webhook): boolean {
    return disabled !== undefined || this.#disabledAt === starts;
  }

  async #read(webhook: Webhook): Promise<void> {
    const room = roomOf(this.#progress);
    if (room === 0) return;
    const { organizationId, signal, wake } = this.#options;
    const after = this.#progress.position;
    const found = await readOn(this.#all, { organizationId, webhook, after, room, signal });
    for (const event of found.events) {
      const { sequence, time } = event;
      this.#set(opened(this.#progress, laneOf(event), { sequence, at: Date.parse(time) }));
      if (this.#fresh.size < FRESH_MAX) this.#fresh.set(sequence, event);
    }
    const isFar = found.position - after >= READ_SPAN;
    this.#progress = { ...this.#progress, position: found.position };
    if (isFar) this.#isDirty = true;
    if (found.isMore) wake();
  }

  /** It may have been changed, given up, or handed on during the read. */
  #begin(): void {
    const webhook = this.#options.webhook();
    if (this.#isDisabled(webhook) || !this.#options.hasLease()) return;
    for (const [name, lane] of Object.entries(this.#progress.lanes)) {
      if (this.#sending.size >= SENDS_PER_WEBHOOK) return;
      if (this.#sending.has(name) || dueAt(lane) > this.#now()) continue;
      this.#sending.set(name, this.#send(webhook, name, lane));
    }
  }

  async #send(webhook: Webhook, name: string, lane: Lane): Promise<void> {
    try {
      await this.#attempt(webhook, name, lane);
    } catch (error) {
      if (this.#options.signal.aborted) return;
      const { webhookId } = webhook;
      this.#all.log.warn({ webhookId, err: error }, 'delivery of a webhook waits');
      this.#waitWith(name);
    } finally {
      this.#sending.delete(name);
      this.#options.wake();
    }
  }

  /** No attempt of the receiver's failed: its count stays as it is. */
  #waitWith(name: string): void {
    const lane = this.#progress.lanes[name];
    const pause = pauseAfter(1, null, this.#all.pauses) ?? 0;
    if (lane === undefined) return;
    const later = this.#now() + pause;
    const probe = lane.probeAt === undefined ? {} : { probeAt: Math.max(lane.probeAt, later) };
    const waiting = { ...lane, nextAt: Math.max(lane.nextAt, later), ...probe };
    this.#progress = {
      ...this.#progress,
      lanes: { ...this.#progress.lanes, [name]: waiting },
    };
  }

  async #attempt(webhook: Webhook, name: string, { open, nextAt: at }: Lane): Promise<void> {
    const { organizationId, signal } = this.#options;
    const isProbe = at > this.#now();
    const { replays } = this.#progress;
    const sequence = open[0]?.sequence ?? 0;
    using _ = await (this.#all.sendSlots.acquire(organizationId, signal) ?? null);
    if (signal.aborted) return;
    const event = await this.#eventOf(sequence);
    const beganAt = this.#now();
    const result = event === null ? LOST : await deliver(this.#all, webhook, event, signal);
    if (result === null) return;
    this.#fresh.delete(sequence);
    const lane = this.#progress.lanes[name];
    const isCurrent = this.#progress.replays === replays && lane?.open[0]?.sequence === sequence;
    const attempts = isCurrent ? lane.attempts + 1 : 1;
    const beganAtIso = new Date(beganAt).toISOString();
    const sent = { name, sequence, event, result, attempts, isProbe, at: beganAtIso };
    const nextAt = isCurrent ? await this.#conclude(webhook, sent) : null;
    this.#all.count(result.outcome);
    const { outcome, status, reason, excerpt } = result;
    const { id: eventId = lostId(sequence), type = '' } = event ?? {};
    await this.#note(webhook, {
      eventId,
      type,
      sequence,
      attempt: attempts + (isCurrent ? (lane.probes ?? 0) : 0),
      at: sent.at,
      durationMs: this.#now() - beganAt,
      outcome,
      status,
      reason,
      excerpt,
      nextAt: nextAt === null ? null : new Date(nextAt).toISOString(),
    });
  }

  /** The list is for people to look at: without it deliveries go on. */
  async #note({ webhookId }: Webhook, attempt: AttemptRecord): Promise<void> {
    try {
      await this.#all.records.note(webhookId, attempt);
    } catch (error) {
      this.#all.log.warn({ webhookId, err: error }, 'an attempt of a webhook cannot be listed');
    }
  }

  async #eventOf(sequence: number): Promise<RecordedEvent | null> {
    const { eventStore } = this.#all.context;
    const fresh = this.#fresh.get(sequence);
    if (fresh !== undefined) return complete(eventStore, fresh);
    return readOne(eventStore, this.#options.organizationId, sequence);
  }

  /** Enters the attempt into the progress. @returns when the next one is due; null: none is */
  async #conclude(
    webhook: Webhook,
    { name, sequence, event, result, attempts, isProbe, at }: Sent,
  ): Promise<number | null> {
    const { outcome, status, retryAfterMs } = result;
    const summary = { at, outcome, status, eventId: event?.id ?? lostId(sequence) };
    const now = this.#now();
    if (event === null || outcome === 'delivered') {
      const next = done(this.#progress, name, summary);
      const isBack = outcome === 'delivered' && next.failingSince !== null;
      this.#set(isBack ? recovered(next, now, this.#all.probeEveryMs) : next);
      return null;
    }
    const isGone = outcome === 'gone';
    const pause = isGone ? null : pauseAfter(attempts, retryAfterMs, this.#all.pauses);
    const next =
      isProbe && !isGone
        ? probeFailed(this.#progress, name, summary)
        : failed(this.#progress, name, summary, now + (pause ?? 0));
    const askedMs = grantedPause(retryAfterMs);
    this.#set(askedMs === 0 ? next : asked(next, name, now + askedMs));
    if (pause !== null || (isProbe && !isGone)) return this.#progress.lanes[name]?.nextAt ?? null;
    this.#disabledAt = webhook.starts;
    try {
      await disable(this.#all, this.#options.organizationId, webhook, event, result);
    } catch (error) {
      this.#disabledAt = null;
      throw error;
    }
    return null;
  }

  async #store(): Promise<void> {
    const isOld = this.#now() - this.#storedAt > POSITION_EVERY_MS;
    if (!this.#isDirty && !isOld) return;
    this.#isDirty = false;
    this.#storedAt = this.#now();
    const { webhookId } = this.#options.webhook();
    const saved = this.#all.records.save(webhookId, this.#progress, this.#revision);
    const revision = await saved.catch((error: unknown) => {
      this.#isDirty = true;
      throw error;
    });
    if (revision === null) throw new Overtaken(`progress of the webhook ${webhookId}`);
    this.#revision = revision;
  }
}

type Sent = {
  name: string;
  sequence: number;
  event: RecordedEvent | null;
  result: SendResult;
  attempts: number;
  /** It came before the lane's pause was over. */
  isProbe: boolean;
  at: string;
};

const LOST: SendResult = {
  outcome: 'lost',
  status: null,
  reason: 'the event could not be read any more',
  excerpt: null,
  retryAfterMs: null,
};
