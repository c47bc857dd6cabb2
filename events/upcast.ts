/**
 * Converts retired shapes to the current one. `ce-dataschema` names the version of an event's data;
 * each step raises the data by one version. Steps are only ever added, and `golden/` holds an
 * example of every version. Stored events are never rewritten: they are converted each time they
 * are read.
 */
export type Step = (data: unknown) => unknown;

/** `upcasters['workload.terminated'][0]` would convert version 1 to 2. */
const upcasters: Readonly<Record<string, readonly Step[]>> = {};

const today = createUpcasts(upcasters);

/** The current version of a type's data, from 1. */
export function dataVersion(type: string): number {
  return today.dataVersion(type);
}

/**
 * Data of any known version in the current shape.
 * @throws RangeError for an unknown version
 */
export function upcast(type: string, version: number, data: unknown): unknown {
  return today.upcast(type, version, data);
}

/** The functions for any steps by type. */
export function createUpcasts(steps: Readonly<Record<string, readonly Step[]>>) {
  function stepsOf(type: string): readonly Step[] {
    return steps[type] ?? [];
  }
  return {
    dataVersion: (type: string) => stepsOf(type).length + 1,
    upcast(type: string, version: number, data: unknown): unknown {
      const chain = stepsOf(type);
      if (!Number.isInteger(version) || version < 1 || version > chain.length + 1)
        throw new RangeError(`${type}: unknown version ${version}`);
      return chain.slice(version - 1).reduce((shape, step) => step(shape), data);
    },
  };
}
