import { newId } from '#src/kernel/ids.ts';
import { FolderGone, type BrowserFolders } from '../browsers.ts';
import type { Cluster } from './cluster.ts';
import { execute, output, ProgramFailed, type Place } from './exec.ts';
import { DOWNLOADS } from './pod.ts';

/**
 * The folders of browsers in Pods: a volume each, on the node's disk. What is in files goes through
 * programs in the Pod, as it is pulled. They run as the browser's user.
 */

/** The exit code of `READ` where there is no file of the name. */
const NONE = 44;

/** Prints the file's length and a line break, then the file. */
const READ = `[ -f "$1" ] && [ ! -L "$1" ] || exit ${NONE}; stat -c %s -- "$1" && exec cat -- "$1"`;
/** Its own name at once would show half a file; a connection that breaks leaves a part of it. */
const WRITE =
  'cat >"$1" && [ "$(stat -c %s -- "$1")" = "$3" ] && mv -fT -- "$1" "$2" && exit; ' +
  'rm -f -- "$1"; exit 1';

/** @param placeOf null: the browser is not there */
export function createPodFolders(
  cluster: Cluster,
  placeOf: (workloadId: string) => Place | null,
): BrowserFolders {
  function place(workloadId: string): Place {
    const found = placeOf(workloadId);
    if (found === null) throw new FolderGone(`browser ${workloadId} is gone`);
    return found;
  }
  /** @returns whether it exited with 0 */
  async function run(workloadId: string, signal: AbortSignal, ...command: string[]) {
    try {
      await execute(cluster, place(workloadId), command, { signal });
      return true;
    } catch (error) {
      if (error instanceof ProgramFailed) return false;
      throw error;
    }
  }

  return {
    path: pathOf,
    async read(workloadId, name, signal) {
      const command = ['sh', '-c', READ, 'read', pathOf(workloadId, name)];
      const printed = output(cluster, place(workloadId), command, { signal });
      try {
        const { length, first } = await readLength(printed);
        return {
          bytes: length,
          body: bodyOf(first, printed, length),
          [Symbol.asyncDispose]: async () => void (await printed.return(undefined)),
        };
      } catch (error) {
        if (error instanceof ProgramFailed && error.exitCode === NONE) return null;
        throw error;
      }
    },
    async write(workloadId, name, { bytes, body }, signal) {
      const part = pathOf(workloadId, `.${newId('part')}`);
      const target = pathOf(workloadId, name);
      const command = ['sh', '-c', WRITE, 'write', part, target, `${bytes}`];
      await execute(cluster, place(workloadId), command, { input: body, signal });
    },
    rename: (workloadId, from, to, signal) =>
      run(workloadId, signal, 'mv', '-fT', '--', pathOf(workloadId, from), pathOf(workloadId, to)),
    async remove(workloadId, name, signal) {
      const isGone = await run(workloadId, signal, 'rm', '-f', '--', pathOf(workloadId, name));
      if (!isGone) throw new Error('the file could not be removed');
    },
  };
}

function pathOf(_: string, name: string): string {
  return `${DOWNLOADS}/${name}`;
}

/** @returns the number in the first line, and what came after it with it */
async function readLength(
  printed: AsyncGenerator<Buffer>,
): Promise<{ length: number; first: Buffer }> {
  let head = Buffer.alloc(0);
  for (;;) {
    const { value, done } = await printed.next();
    if (done === true) throw new Error('the length of a file in the Pod was not told');
    head = Buffer.concat([head, value]);
    const end = head.indexOf('\n');
    if (end >= 0)
      return { length: Number(head.subarray(0, end).toString()), first: head.subarray(end + 1) };
  }
}

async function* bodyOf(first: Buffer, rest: AsyncGenerator<Buffer>, length: number) {
  let read = first.length;
  if (first.length > 0) yield first;
  for await (const piece of rest) {
    read += piece.length;
    yield piece;
  }
  if (read !== length) throw new Error('the file was cut off while it was read');
}
