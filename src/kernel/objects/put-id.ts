import { randomBytes } from 'node:crypto';

/** The id begins with the time, so that leftovers are known by their age. */
export function newPutId(now: number): string {
  return `${now.toString(36)}-${randomBytes(6).toString('hex')}`;
}

/** When a put began, in milliseconds; null if the id is not of a put. */
export function beginOfPut(id: string): number | null {
  const parts = /^([0-9a-z]{1,10})-[0-9a-f]{12}$/.exec(id);
  return parts === null ? null : Number.parseInt(parts[1] ?? '', 36);
}
