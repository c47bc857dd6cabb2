import { everyProjection } from '#projections/all-projections.ts';
import { idOf, type Projection } from '#projections/projection.ts';
import { Misuse } from './errors.ts';
import type { Given } from './arguments.ts';

/** The projections that NAME or --all name; neither: all. @throws Misuse for both of them */
export function givenProjections(given: Given): readonly Projection<unknown>[] {
  const one = given.optionalOperand(asProjection);
  if (one !== null && given.has('all')) throw new Misuse('either a name or --all');
  return one === null ? everyProjection : [one];
}

/** `session-view`, or with its version: `session-view:v1`. */
export function asProjection(text: string): Projection<unknown> {
  const found = everyProjection.find((one) => one.name === text || idOf(one) === text);
  if (found !== undefined) return found;
  const names = everyProjection.map(({ name }) => name).join(', ');
  throw new Misuse(`is none of the projections: ${names}`);
}
