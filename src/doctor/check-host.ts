import type { HostFacts } from './facts.ts';
import { findingsOf, type Finding } from './finding.ts';

const GIB = 1024 ** 3;
const NODE_MAJOR_MIN = 24;
/** Below this the log's server stops taking writes before anybody has had time to act. */
const FREE_BYTES_BAD = 0.5 * GIB;
const FREE_BYTES_WARN = 5 * GIB;
const FREE_SHARE_WARN = 0.1;
/** Each session that is driven and watched takes some six. */
const OPEN_FILES_WARN = 4096;

/** What the machine of this process has to be like. Pure. */
export function judgeHost(host: HostFacts): Finding[] {
  const { found, ok, warn, bad } = findingsOf('host');
  const major = Number.parseInt(host.node.replace(/^v/, ''), 10);
  if (major >= NODE_MAJOR_MIN) ok('node', `Node ${host.node}`);
  else bad('node', `Node ${host.node} reads no TypeScript`, `install Node ${NODE_MAJOR_MIN}`);

  if (host.unwritable === null) ok('data-dir', `${host.dataDir} can be written`);
  else
    bad(
      'data-dir',
      `${host.dataDir} cannot be written: ${host.unwritable}`,
      'make it writable for the user of the service, or name another in DATA_DIR',
    );
  for (const name of host.openSecrets)
    bad(
      'secret-files',
      `${host.dataDir}/${name} may be read by other users`,
      `chmod 600 ${host.dataDir}/${name}; who has read it has what it opens: rotate it`,
    );
  if (host.openSecrets.length === 0) ok('secret-files', 'nobody else reads the data folder');

  judgeDisk(host, { ok, warn, bad });
  const { openFilesMax } = host;
  if (openFilesMax !== null && openFilesMax < OPEN_FILES_WARN)
    warn(
      'open-files',
      `the process may open ${openFilesMax} files and sockets`,
      `raise it to ${OPEN_FILES_WARN} at least (ulimit -n, LimitNOFILE=, ulimits of compose)`,
    );
  else ok('open-files', `${openFilesMax ?? 'unlimited'} open files and sockets`);
  for (const { variable, port, use } of host.ports)
    if (use === 'taken')
      bad(
        'ports',
        `${variable}: port ${port} is another program’s`,
        `end that program, or choose another port in ${variable}`,
      );
  if (host.ports.every(({ use }) => use !== 'taken'))
    ok('ports', host.ports.map(({ port, use }) => `${port} is ${use}`).join(', ') || 'none needed');
  return found;
}

function judgeDisk(
  { dataDir, freeBytes, totalBytes }: HostFacts,
  { ok, warn, bad }: Pick<ReturnType<typeof findingsOf>, 'ok' | 'warn' | 'bad'>,
): void {
  const what = `${(freeBytes / GIB).toFixed(1)} GiB free at ${dataDir}`;
  const advice = 'make room or a larger disk; 1 million events take about 1 GiB';
  if (freeBytes < FREE_BYTES_BAD) bad('disk', what, advice);
  else if (freeBytes < FREE_BYTES_WARN || freeBytes < totalBytes * FREE_SHARE_WARN)
    warn('disk', what, advice);
  else ok('disk', what);
}
