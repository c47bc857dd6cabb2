import type { BrowserBuild } from '../browsers.ts';
import { parseVersion } from '../chromium/program-version.ts';
import { KubernetesUnavailable, messageOf, type Cluster } from './cluster.ts';
import type { PodOptions } from './pod.ts';
import { runProbe } from './probe.ts';

/** What Kubernetes does not tell of an image: a Pod of it does. */
const SCRIPT = `
for file in link.conf relay.pl; do
  [ -e /usr/local/lib/browser/$file ] && echo "has $file"
done
[ "$BROWSER_KEYS" = stdin ] && echo 'has keys'
echo "built $(stat -c %Y /var/lib/dpkg/status)"
/usr/lib/chromium/chromium --version 2>/dev/null
`;

/**
 * Chromium's version in the image, when its packages were installed, and whether its browsers may
 * have egress rules.
 * @throws KubernetesUnavailable where the image does not run, or its browsers cannot be reached
 */
export async function inspectImage(
  cluster: Cluster,
  options: PodOptions,
): Promise<{ build: BrowserBuild; hasRelay: boolean }> {
  const lines = await runProbe(cluster, options, { egress: 'closed', script: SCRIPT }).catch(
    (error: unknown) => {
      const why = `no Pod of ${options.image} runs: ${messageOf(error)}`;
      throw new KubernetesUnavailable(`BROWSER_IMAGE: ${why}.`, { cause: error });
    },
  );
  const version = parseVersion(lines.join('\n'));
  if (version === null || !lines.includes('has link.conf') || !lines.includes('has keys'))
    throw new KubernetesUnavailable(
      `BROWSER_IMAGE: ${options.image} is no image that the present deploy/browser builds.`,
    );
  const seconds = Number(lines.find((line) => line.startsWith('built '))?.slice('built '.length));
  return {
    build: { version, builtAt: Number.isNaN(seconds) ? null : seconds * 1000 },
    hasRelay: lines.includes('has relay.pl'),
  };
}
