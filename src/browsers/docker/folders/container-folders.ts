import { once } from 'node:events';
import type Docker from 'dockerode';
import { DOWNLOADS_FOLDER } from '#src/browsers/link/downloads-folder.ts';
import { newId } from '#src/kernel/ids.ts';
import { FolderGone, type BrowserFolders } from '../../browsers.ts';
import { bounded, statusOf, WORK_MS } from '../engine.ts';
import { archiveOf, fileIn } from './archive.ts';

/**
 * The folders of browsers in containers: a volume each, which is on the engine's disk and so counts
 * towards no memory limit. What is in files goes through the engine's archive API, a tar of one
 * file, as it is pulled; `mv` and `rm` run in the container as the browser's user.
 */

/** The home of the browser's user in the image: deploy/browser/Dockerfile. */
const FOLDER = `/home/browser/${DOWNLOADS_FOLDER}`;
const USER = '1000:1000';

/** The mount of a container's own volume; it is removed with the container. */
export function downloadsMount(): Docker.MountSettings {
  // Without a source the volume has no name, and is the container's own.
  return { Type: 'volume', Target: FOLDER, Source: '' };
}

/** @param containerOf null: the browser is not there */
export function createContainerFolders(
  containerOf: (workloadId: string) => Docker.Container | null,
): BrowserFolders {
  function container(workloadId: string): Docker.Container {
    const found = containerOf(workloadId);
    if (found === null) throw new FolderGone(`browser ${workloadId} is gone`);
    return found;
  }
  /** Runs a program as the browser's user. @returns whether it exited with 0 */
  async function run(workloadId: string, signal: AbortSignal, ...command: string[]) {
    const within = bounded(signal, WORK_MS);
    const exec = await container(workloadId).exec({
      Cmd: command,
      User: USER,
      AttachStdout: true,
      ...within,
    });
    const output = await exec.start({ ...within });
    output.resume();
    await once(output, 'end', { signal: within.abortSignal });
    return (await exec.inspect(within)).ExitCode === 0;
  }

  return {
    path: pathOf,
    async read(workloadId, name, signal) {
      try {
        const archive = { path: pathOf(workloadId, name), abortSignal: signal };
        return await fileIn(await container(workloadId).getArchive(archive));
      } catch (error) {
        if (statusOf(error) === 404) return null;
        throw error;
      }
    },
    async write(workloadId, name, file, signal) {
      // Its own name at once would show half a file.
      const part = `.${newId('part')}`;
      try {
        const to = { path: FOLDER, abortSignal: signal };
        await container(workloadId).putArchive(archiveOf(part, file, signal), to);
        const [from, into] = [pathOf(workloadId, part), pathOf(workloadId, name)];
        if (await run(workloadId, signal, 'mv', '-fT', '--', from, into)) return;
        throw new Error('the file could not be put in its place');
      } catch (error) {
        const late = AbortSignal.timeout(REMOVED_WITHIN_MS);
        await run(workloadId, late, 'rm', '-f', '--', pathOf(workloadId, part)).catch(() => false);
        throw error;
      }
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
  return `${FOLDER}/${name}`;
}

const REMOVED_WITHIN_MS = 5_000;
