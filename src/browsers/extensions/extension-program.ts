import { buffer } from 'node:stream/consumers';
import { readExtension, type ExtensionFacts } from './read-extension.ts';
import { BadExtension } from './zip.ts';

/**
 * A program: reads an upload on its input and prints what it is, as JSON. It has no secret of the
 * service, a heap of its own, and is killed when it is late: see `extension-reader.ts`.
 */

/** `zipAt`: where the zip begins in the upload. */
export type ExtensionAnswer = (ExtensionFacts & { zipAt: number }) | { bad: string };

async function answer(upload: Buffer): Promise<ExtensionAnswer> {
  try {
    const { zip, ...facts } = await readExtension(upload);
    return { ...facts, zipAt: upload.length - zip.length };
  } catch (error) {
    if (error instanceof BadExtension) return { bad: error.message };
    throw error;
  }
}

process.stdout.write(JSON.stringify(await answer(await buffer(process.stdin))));
