import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';

const NFT_MS = 10_000;

/** Has nft read its script from its input, and leave out what it counts where it lists. */
export const NFT_ARGS = ['-s', '-f', '-'] as const;

/**
 * Runs a script of nft's on this machine, as a whole or not at all.
 * @returns what it lists; null where this process may not or there is no nft: somebody else has to
 * do it
 * @throws Error when nft does not take the script
 */
export async function runNft(script: string): Promise<string | null> {
  if (process.getuid?.() !== 0) return null;
  const child = spawn('nft', NFT_ARGS, { stdio: ['pipe', 'pipe', 'pipe'], timeout: NFT_MS });
  child.stdin.on('error', () => {}).end(script);
  try {
    const [listed, said, [exitCode]] = await Promise.all([
      text(child.stdout),
      text(child.stderr),
      once(child, 'close') as Promise<[number | null]>,
    ]);
    if (exitCode === 0) return listed;
    // Root in a container without the capability.
    if (said.includes('Operation not permitted')) return null;
    throw new Error(`nft: ${said.trim().slice(-1000)}`);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw error;
  }
}
