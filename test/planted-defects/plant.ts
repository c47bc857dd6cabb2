import type { Defect } from './defects.ts';

/**
 * The source with the defect.
 * @throws Error if the text to replace is not there once: the source has changed, and the defect
 * has to be written anew
 */
export function planted(source: string, { part, file, from, to }: Defect): string {
  const count = source.split(from).length - 1;
  if (count !== 1)
    throw new Error(`${part}: its text is ${count} times in ${file}, not once: ${from.trim()}`);
  return source.replace(from, () => to);
}
