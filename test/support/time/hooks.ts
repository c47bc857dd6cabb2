import { afterAll, beforeAll } from 'vitest';

type Hook = (work: () => unknown) => void;

/** What runs before and after all tests of a suite: vitest's own, in real time. */
export const hooks: { beforeAll: Hook; afterAll: Hook } = { beforeAll, afterAll };
