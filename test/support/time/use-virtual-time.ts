import { afterAll, aroundEach, beforeAll } from 'vitest';
import { createVirtualTime, type VirtualTime } from './virtual-time.ts';

type Work = () => unknown;

/**
 * The tests of this file, with what runs before and after each, run in virtual time: timers fire
 * one after the other as soon as nothing else is left to do, and random numbers follow from the
 * seed. A test that waits for what never happens fails at once.
 *
 * Each test has a time of its own, unless there is something before all: then it is one for all,
 * and stands still between the tests. A connection is refused; files and other work of this process
 * are waited for.
 */
export function useVirtualTime(seed = 1) {
  let common: VirtualTime | null = null;
  aroundEach((runTest, context) => {
    const givenUp = new AbortController();
    // What the test is ended by when it takes too long.
    const signal = AbortSignal.any([context.signal, givenUp.signal]);
    Object.assign(context, { signal });
    return (common ?? createVirtualTime(seed)).run(runTest, (reason) => givenUp.abort(reason));
  });
  /** For all tests of the file: the time is made by the first. */
  const inCommonTime = (work: Work) => async () => {
    common ??= createVirtualTime(seed);
    await common.run(async () => void (await work()));
  };
  return {
    /** vitest's, in the time of all tests. */
    beforeAll: (work: Work) => beforeAll(inCommonTime(work)),
    /** vitest's, in the time of all tests. */
    afterAll: (work: Work) => afterAll(inCommonTime(work)),
  };
}
