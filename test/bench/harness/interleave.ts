import { summarize, type Samples } from '../samples.ts';

/** Measured figures by name. */
export type Figures<Name extends string> = {
  add(name: Name, ...values: number[]): void;
  /** @throws Error if nothing was measured */
  of(name: Name): Samples;
};

export function createFigures<Name extends string>(): Figures<Name> {
  const measured = new Map<Name, number[]>();
  return {
    add(name, ...values) {
      measured.set(name, [...(measured.get(name) ?? []), ...values]);
    },
    of(name) {
      const values = measured.get(name);
      if (values === undefined) throw new Error(`${name} was not measured`);
      return summarize(values);
    },
  };
}

/**
 * Takes the steps one after the other, `rounds` times. Each round begins with another step, and
 * every second one goes backwards, so that a step has neither its place nor its predecessor for
 * long: a machine that slows down does so for all of them.
 * @param between called before each step
 */
export async function interleave(
  steps: readonly (() => Promise<void>)[],
  rounds: number,
  between: () => Promise<void>,
): Promise<void> {
  for (let round = 0; round < rounds; round += 1) {
    const first = round % steps.length;
    const rotated = [...steps.slice(first), ...steps.slice(0, first)];
    for (const step of round % 2 === 0 ? rotated : rotated.toReversed()) {
      await between();
      await step();
    }
  }
}
