import { BoundedMap } from '#src/kernel/async/bounded-map.ts';
import type { PageEvent } from './page-events.ts';

/** What a page has to reach. */
export type Milestone = 'load' | 'domcontentloaded' | 'networkidle';

const NAMES = { load: 'load', domcontentloaded: 'DOMContentLoaded', networkidle: 'networkIdle' };

/** Frames that are watched; a page may make as many as it likes. */
const FRAMES_MAX = 256;
/** Names of one frame; Chromium has a dozen. */
const NAMES_MAX = 32;
/** Documents that the page may come back to; Chromium keeps six. */
const KEPT_MAX = 16;

/** A frame's document and what it has reached. */
type Frame = { loaderId: string; reached: Set<string> };

/**
 * How far the document in a page's main frame is, and which one it is: `loaderId` changes with each
 * document.
 */
export class DocumentProgress {
  readonly #mainFrame: string;
  readonly #frames = new Map<string, Frame>();
  /** What the main frame's last documents have reached, the oldest first. */
  readonly #kept = new BoundedMap<string, Set<string>>(KEPT_MAX);
  #wake: (() => void) | null = null;

  constructor(mainFrame: string) {
    this.#mainFrame = mainFrame;
  }

  take(event: PageEvent): void {
    if (event.method === 'Page.frameDetached') this.#frames.delete(event.frameId);
    if (event.method === 'Page.lifecycleEvent') this.#reach(event);
    this.#wake?.();
  }

  #reach({ frameId, loaderId, name }: Extract<PageEvent, { name: string }>): void {
    const isMain = frameId === this.#mainFrame;
    let frame = this.#frames.get(frameId);
    if (frame === undefined && !isMain && this.#frames.size > FRAMES_MAX) return;
    if (frame?.loaderId !== loaderId) {
      frame = { loaderId, reached: (isMain && this.#kept.get(loaderId)) || new Set() };
      if (isMain) this.#show(frame);
      else this.#frames.set(frameId, frame);
    }
    if (frame.reached.size < NAMES_MAX) frame.reached.add(name);
  }

  #show(frame: Frame): void {
    // A new document of the page has frames of its own.
    this.#frames.clear();
    this.#frames.set(this.#mainFrame, frame);
    this.#kept.set(frame.loaderId, frame.reached);
  }

  /**
   * The page shows that document: an earlier one that the browser had kept, of which it says
   * nothing anew (back/forward cache). One that is not known stays unknown.
   */
  showsAgain(loaderId: string): void {
    const reached = this.#kept.get(loaderId);
    if (reached !== undefined && loaderId !== this.loaderId) this.#show({ loaderId, reached });
  }

  /**
   * Whether the present document has ended before it was whole, as one whose own script goes to a
   * download or to another program: it loads nothing more, and reaches nothing more.
   */
  get isStopped(): boolean {
    const reached = this.#frames.get(this.#mainFrame)?.reached;
    return reached?.has(NAMES.networkidle) === true && !reached.has(NAMES.domcontentloaded);
  }

  /** The document that has reached the milestone, or has stopped; null: the present one has not. */
  #ready(milestone: Milestone, before: string | null): string | null {
    const main = this.#frames.get(this.#mainFrame);
    if (main === undefined || main.loaderId === before) return null;
    if (this.isStopped) return main.loaderId;
    const name = NAMES[milestone];
    const counted = milestone === 'networkidle' ? [...this.#frames.values()] : [main];
    return counted.every(({ reached }) => reached.has(name)) ? main.loaderId : null;
  }

  /** The present document; null: none is known yet. */
  get loaderId(): string | null {
    return this.#frames.get(this.#mainFrame)?.loaderId ?? null;
  }

  /**
   * Resolves with the document's loader once the page's document has reached the milestone, or
   * never will, as `isStopped` says; the caller bounds the wait by the signal.
   * @param before a document that does not count: the one before the page was opened
   * @throws the reason of the aborted signal
   */
  async until(
    milestone: Milestone,
    { before, signal }: { before: string | null; signal: AbortSignal },
  ): Promise<string> {
    const wake = () => this.#wake?.();
    signal.addEventListener('abort', wake);
    try {
      for (;;) {
        signal.throwIfAborted();
        const ready = this.#ready(milestone, before);
        if (ready !== null) return ready;
        await new Promise<void>((resolve) => (this.#wake = resolve));
      }
    } finally {
      this.#wake = null;
      signal.removeEventListener('abort', wake);
    }
  }
}
