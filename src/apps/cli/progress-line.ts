import { formatDuration } from './output.ts';

/** Progress of a long task: `done` of `total`; `units` processed since it began give the rate. */
export type Step = { label: string; done: number; total: number; units: number; note?: string };

/** Shows progress on stderr: one line that is rewritten on a terminal, else a line every 5 s. */
export type ProgressLine = { show(step: Step): void; end(): void };

const EVERY_MS = 100;
const EVERY_MS_PLAIN = 5_000;
const BAR = 24;
/** ESC [K: clears the rest of the line. */
const CLEAR = '\u001B[K';

export function createProgressLine(isQuiet: boolean): ProgressLine {
  const { stderr } = process;
  const isTerminal = stderr.isTTY;
  const everyMs = isTerminal ? EVERY_MS : EVERY_MS_PLAIN;
  let label = '';
  let startedAt = 0;
  let shownAt = 0;
  let isOpen = false;

  return {
    show(step) {
      if (isQuiet) return;
      const now = performance.now();
      if (step.label !== label) {
        label = step.label;
        startedAt = now;
        shownAt = isTerminal ? 0 : now;
      }
      if (now - shownAt < everyMs) return;
      shownAt = now;
      const line = formatProgress(step, now - startedAt);
      stderr.write(isTerminal ? `\r${line}${CLEAR}` : `${line}\n`);
      isOpen = isTerminal;
    },
    end() {
      if (isOpen) stderr.write(`\r${CLEAR}`);
      isOpen = false;
    },
  };
}

/** `session-view:v1  [######------]  52%  31,200/s  15.0s left`. */
export function formatProgress({ label, done, total, units, note }: Step, ms: number): string {
  const share = total === 0 ? 1 : Math.min(1, done / total);
  const filled = Math.round(share * BAR);
  const bar = '#'.repeat(filled) + '-'.repeat(BAR - filled);
  const perSecond = ms === 0 ? 0 : Math.round(units / (ms / 1000));
  const left =
    share === 0 || share === 1 ? null : formatDuration(Math.round((ms / share) * (1 - share)));
  const parts = [
    label,
    `[${bar}]`,
    `${Math.floor(share * 100)}%`.padStart(4),
    `${formatNumber(perSecond)}/s`,
    left === null ? '' : `${left} left`,
    note ?? '',
  ];
  return parts.filter((part) => part !== '').join('  ');
}

/** `1,234,567`. */
export function formatNumber(value: number): string {
  return value.toLocaleString('en-US');
}
