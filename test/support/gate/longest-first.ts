import { relative } from 'node:path';
import { BaseSequencer, type TestSpecification } from 'vitest/node';
import { readDurations } from './durations.ts';

/**
 * Runs the file that took longest first, so that all workers end at about the same time. vitest's
 * own order is by the results of the last run, which a fresh clone has not.
 */
export class LongestFirst extends BaseSequencer {
  override async sort(specifications: TestSpecification[]): Promise<TestSpecification[]> {
    const { root } = this.ctx.config;
    const durations = readDurations(root);
    const seconds = ({ moduleId }: TestSpecification): number =>
      durations[relative(root, moduleId)] ?? 0;
    const group = ({ project }: TestSpecification): number => project.config.sequence.groupOrder;
    return specifications.toSorted((a, b) => group(a) - group(b) || seconds(b) - seconds(a));
  }
}
