import type { HostFacts } from './facts.ts';
import { findingsOf, type Finding } from './finding.ts';

const GIB = 1024 ** 3;
const NODE_MAJOR_MIN = 24;
/** Below this nats-server may stop taking writes before an operator can act. */
const FREE_BYTES_BAD = 0.5 * GIB;
const FREE_BYTES_WARN = 5 * GIB;
const FREE_SHARE_WARN = 0.1;
/** A session with a CDP and a VNC client takes about six. */
const OPEN_FILES_WARN = 4096;

/** Findings about the machine of this process. Pure. */
export function checkHost(host: HostFacts): Finding[] {
  const { found, ok, warn, bad } = findingsOf('host');
  const major = Number.parseInt(host.node.replace(/^v/, ''), 10);
  if (major >= NODE_MAJOR_MIN) ok('node', `Node ${host.node}`);
  else bad('node', `Node ${host.node} cannot run TypeScript`, `install Node ${NODE_MAJOR_MIN}`);

  if (host.unwritable === null) ok('data-dir', `${host.dataDir} can be written`);
  else
    bad(
      'data-dir',
      `${host.dataDir} cannot be written: ${host.unwritable}`,
      'make it writable for the user of the service, or set DATA_DIR to another folder',
    );
  for (const name of host.openSecrets)
    bad(
      'secret-files',
      `${host.dataDir}/${name} may be read by other users`,
      `chmod 600 ${host.dataDir}/${name}; rotate the secret if another user may have read it`,
    );
  if (host.openSecrets.length === 0)
    ok('secret-files', 'other users cannot read the secrets in the data folder');

  checkDisk(host, { ok, warn, bad });
  const { openFilesMax } = host;
  if (openFilesMax !== null && openFilesMax < OPEN_FILES_WARN)
    warn(
      'open-files',
      `the process may open ${openFilesMax} files and sockets`,
      `raise it to at least ${OPEN_FILES_WARN} (ulimit -n, LimitNOFILE=, ulimits of compose)`,
    );
  else ok('open-files', `${openFilesMax ?? 'unlimited'} open files and sockets`);
  for (const { variable, port, use } of host.ports)
    if (use === 'taken')
      bad(
        'ports',
        `${variable}: another program uses port ${port}`,
        `end that program, or choose another port in ${variable}`,
      );
  if (host.ports.every(({ use }) => use !== 'taken'))
    ok('ports', host.ports.map(({ port, use }) => `${port} is ${use}`).join(', ') || 'none needed');
  return found;
}

function checkDisk(
  { dataDir, freeBytes, totalBytes }: HostFacts,
  { ok, warn, bad }: Pick<ReturnType<typeof findingsOf>, 'ok' | 'warn' | 'bad'>,
): void {
  const what = `${(freeBytes / GIB).toFixed(1)} GiB free at ${dataDir}`;
  const advice = 'free some space or use a larger disk; 1 million events take about 1 GiB';
  if (freeBytes < FREE_BYTES_BAD) bad('disk', what, advice);
  else if (freeBytes < FREE_BYTES_WARN || freeBytes < totalBytes * FREE_SHARE_WARN)
    warn('disk', what, advice);
  else ok('disk', what);
}
