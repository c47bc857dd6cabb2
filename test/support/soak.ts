/** Whether this run is `npm run soak`: tests that repeat run their long form. */
export const isSoak = process.env['SOAK'] === '1';

/** A number of rounds, events or seconds: the first for `npm run soak`, the second otherwise. */
export function soakOr<Value>(inSoak: Value, otherwise: Value): Value {
  return isSoak ? inSoak : otherwise;
}
