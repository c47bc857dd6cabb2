/**
 * Retired shapes → today's. A type's data version stands in its `ce-dataschema`; each step lifts
 * the data by one version. Steps are only ever added, and `golden/` holds an example of every
 * version. What is stored is never written again: it is lifted each time it is read.
 */
export type Step = (data: unknown) => unknown;

/** `upcasters['session.requested'][0]` lifts version 1 to 2. No shape has been retired yet. */
const upcasters: Readonly<Record<string, readonly Step[]>> = {};

const today = createUpcasts(upcasters);

/** Today's version of a type's data, from 1. */
export function dataVersion(type: string): number {
  return today.dataVersion(type);
}

/** Data of any known version in today's shape. @throws RangeError for a version not known here. */
export function upcast(type: string, version: number, data: unknown): unknown {
  return today.upcast(type, version, data);
}

/** The same two for any steps by type. */
export function createUpcasts(steps: Readonly<Record<string, readonly Step[]>>) {
  function stepsOf(type: string): readonly Step[] {
    return steps[type] ?? [];
  }
  return {
    dataVersion: (type: string) => stepsOf(type).length + 1,
    upcast(type: string, version: number, data: unknown): unknown {
      if (!Number.isInteger(version) || version < 1 || version > stepsOf(type).length + 1)
        throw new RangeError(`${type}: version ${version} is not known here`);
      return stepsOf(type)
        .slice(version - 1)
        .reduce((shape, step) => step(shape), data);
    },
  };
}
