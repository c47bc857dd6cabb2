/**
 * Converts retired shapes to the current one. `ce-dataschema` names the version of an event's data;
 * each step raises the data by one version. Steps are only ever added, and `golden/` holds an
 * example of every version. Stored events are never rewritten: they are converted each time they
 * are read.
 */
export type Step = (data: unknown) => unknown;

/** `upcasters['workload.terminated'][0]` would convert version 1 to 2. */
const upcasters: Readonly<Record<string, readonly Step[]>> = {
  // 2: `browsers` may be kubernetes, which a build of version 1 refuses.
  'server.joined': [(data) => data],
  // 2: the reason of a gap may be handoff, which a build of version 1 refuses.
  'session.recording-stored': [(data) => data],
};

/** Whether data of a type need its newest version, or the one before has them as they are. */
const needsNewest: Readonly<Record<string, (data: never) => boolean>> = {
  'server.joined': ({ browsers }: { browsers: string }) => browsers === 'kubernetes',
  'session.recording-stored': ({ gaps }: { gaps: readonly { reason: string }[] }) =>
    gaps.some(({ reason }) => reason === 'handoff'),
};

const today = createUpcasts(upcasters, needsNewest);

/** The current version of a type's data, from 1. */
export function dataVersion(type: string): number {
  return today.dataVersion(type);
}

/**
 * The version that data of a type are written as: the oldest that has them as they are. In a
 * rolling upgrade the previous release reads them too.
 */
export function writtenVersion(type: string, data: unknown): number {
  return today.writtenVersion(type, data);
}

/**
 * Data of any known version in the current shape.
 * @throws RangeError for an unknown version
 */
export function upcast(type: string, version: number, data: unknown): unknown {
  return today.upcast(type, version, data);
}

/** The functions for any steps by type, and what needs the newest version of it (absent: all). */
export function createUpcasts(
  steps: Readonly<Record<string, readonly Step[]>>,
  needs: typeof needsNewest = {},
) {
  function stepsOf(type: string): readonly Step[] {
    return steps[type] ?? [];
  }
  const dataVersion = (type: string) => stepsOf(type).length + 1;
  return {
    dataVersion,
    writtenVersion: (type: string, data: unknown) =>
      dataVersion(type) - (needs[type]?.(data as never) === false ? 1 : 0),
    upcast(type: string, version: number, data: unknown): unknown {
      const chain = stepsOf(type);
      if (!Number.isInteger(version) || version < 1 || version > chain.length + 1)
        throw new RangeError(`${type}: unknown version ${version}`);
      if (version > chain.length) return data;
      return chain.slice(version - 1).reduce((shape, step) => step(shape), data);
    },
  };
}
