/** Before each test file: the seed and the number of inputs of its properties (fast-check). */
import fc from 'fast-check';
import { runs, seed } from './seeds.ts';

/** The inputs of a property that names no number: the library's own default. */
const RUNS = 100;

// With the failed expectation in the message: reports of other forms lack an error's cause.
fc.configureGlobal({ seed, numRuns: runs(RUNS), includeErrorInReport: true });
