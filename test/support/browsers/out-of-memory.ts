import { writeFile } from 'node:fs/promises';
import { docker } from '../servers/docker-engine.ts';

/** A script that allocates and writes memory, 32 MiB at a time, until none is left. */
export const EAT = `
  const eaten = [];
  const eat = () => {
    for (let i = 0; i < 4; i += 1) eaten.push(new Uint8Array(8 << 20).fill(eaten.length + 1));
    setTimeout(eat, 0);
  };
  eat();
`;

/**
 * Has the kernel kill a container's Chromium first for lack of memory: it would kill the process of
 * the page.
 */
export async function preferChromium(container: string): Promise<void> {
  const rows = docker('top', container, '-o', 'pid,args').split('\n');
  const main = rows.find((row) => row.includes('remote-debugging-port') && !/--type=/.test(row));
  await writeFile(`/proc/${/\d+/.exec(main ?? '')?.[0]}/oom_score_adj`, '1000');
}
