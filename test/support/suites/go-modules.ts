/** Programs for tests that no package has: built by Go from modules whose checksums are here. */
import { execFileSync } from 'node:child_process';

/**
 * A program's module and version, its path in it, and the module's checksum (SHA-256, as go.sum has
 * it). The module's own go.sum has those of what it needs.
 */
const MODULES = {
  versitygw: {
    module: 'github.com/versity/versitygw',
    version: 'v1.8.0',
    path: '/cmd/versitygw',
    sum: 'h1:au+wI+aybno/STsQiSm35Uu6Q6iK5MWReQxgO6SEMFc=',
  },
  helm: {
    module: 'helm.sh/helm/v3',
    version: 'v3.19.0',
    path: '/cmd/helm',
    sum: 'h1:krVyCGa8fa/wzTZgqw0DUiXuRT5BPdeqE/sQXujQ22k=',
  },
  coredns: {
    module: 'github.com/coredns/coredns',
    version: 'v1.12.4',
    path: '',
    sum: 'h1:rIMnjPvB02drP18DTlJJb1vGkc8Tyl8fe7NFnnSv2lU=',
  },
  'kube-router': {
    module: 'github.com/cloudnativelabs/kube-router/v2',
    version: 'v2.1.0',
    path: '/cmd/kube-router',
    sum: 'h1:xWsptKtmZ44L+NjwFKoFAFlVdxCz8fka9A/eYJe95Ok=',
  },
} as const;
export type GoModule = keyof typeof MODULES;

export function goVersion(name: GoModule): string {
  return MODULES[name].version;
}

/** What `go install` gets for it. @throws Error where its checksum is not that of the table */
export function verifiedGoPackage(name: GoModule): string {
  const { module, version, path, sum } = MODULES[name];
  const given = ['mod', 'download', '-json', `${module}@${version}`];
  const said = execFileSync('go', given, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] });
  const { Sum: found } = JSON.parse(said) as { Sum?: string };
  if (found !== sum) throw new Error(`${module}@${version} has the checksum ${found}, not ${sum}`);
  return `${module}${path}@${version}`;
}
