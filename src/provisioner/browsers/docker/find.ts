import type { RunningBrowser } from '../browsers.ts';
import { bounded } from './engine.ts';
import { filterFor, readFound } from './naming.ts';
import type { Found } from './naming.ts';
import type { DockerSite } from './site.ts';

/** The containers of this server's browsers, or of one, whoever made them; those that ended too. */
export async function listFound(
  { docker, confinement }: DockerSite,
  workloadId?: string,
): Promise<Found[]> {
  const { serverId, publish } = confinement;
  const filters = JSON.stringify(filterFor(serverId, workloadId));
  const infos = await docker.listContainers({ all: true, filters, ...bounded() });
  return infos.map((info) => readFound(info, publish));
}

/**
 * A browser that does not say where its sockets are within this is not taken over, and its session
 * lost: a machine on which all has just started anew is slow.
 */
const ANSWER_MS = 5_000;

/** A browser in a container that an earlier process made; null where none answers. */
export async function findBrowser(found: Found): Promise<RunningBrowser | null> {
  const { workloadId, isRunning, cdp, vnc } = found;
  if (!isRunning || cdp === null || vnc === null) return null;
  try {
    const signal = AbortSignal.timeout(ANSWER_MS);
    const answer = await fetch(`http://${cdp.host}:${cdp.port}/json/version`, { signal });
    const { webSocketDebuggerUrl } = (await answer.json()) as { webSocketDebuggerUrl: string };
    return { workloadId, cdp: { ...cdp, path: new URL(webSocketDebuggerUrl).pathname }, vnc };
  } catch {
    return null;
  }
}
