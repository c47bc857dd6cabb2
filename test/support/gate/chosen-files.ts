import { globSync } from 'node:fs';
import { tierOf } from '#test/tiers.ts';
import { changedFiles, isDocument } from './change.ts';
import { readDurations, type Durations } from './durations.ts';

/** Seconds of long files in `npm run test:real`, one after the other, by their recorded times. */
const SECONDS_MAX = 180;
/** For a long file whose time is not recorded. */
const UNKNOWN_SECONDS = 60;

/**
 * Long tests that prove what a path is about, most telling first: a change below the path runs
 * them before it lands, the others wait for the night.
 */
const PROOFS: readonly [path: string, ...tests: string[]][] = [
  ['src/features', 'e2e/operations/without-feature'],
  ['src/start/features.ts', 'e2e/operations/without-feature'],
  ['src/features/backup', 'e2e/operations/backup'],
  ['src/features/archive', 'unit/archive/verify', 'e2e/operations/archive'],
  [
    'src/features/archive/archivist',
    'contract/archivist/archivist-killed',
    'e2e/operations/archive',
  ],
  ['src/kernel/s3', 'contract/objects/object-store-s3', 'contract/archive/archive-files-s3'],
  ['src/kernel/objects', 'contract/objects/object-store-s3', 'e2e/clients/files'],
  ['src/features/webhooks', 'e2e/dashboard/webhooks'],
  ['src/features/webhooks/sender', 'e2e/dashboard/webhooks', 'faults/webhooks-killed'],
  [
    'src/browsers/docker',
    'contract/browsers/browsers-docker',
    'contract/browsers/docker-isolation',
    'contract/browsers/docker-network',
    'contract/browsers/docker-link',
    'contract/browsers/docker-fresh',
    'faults/docker/docker-left',
    'faults/docker/docker-memory',
  ],
  ['src/browsers/link', 'contract/browsers/docker-link'],
  [
    'src/browsers/process',
    'contract/browsers/browsers-leftover',
    'contract/browsers/browsers-locales',
  ],
  [
    'src/browsers/chromium',
    'contract/browsers/browsers-screens',
    'contract/browsers/browsers-screens-docker',
    'contract/browsers/browsers-printing',
  ],
  ['src/browsers/observer', 'contract/browsers/browsers-locales'],
  ['src/browsers', 'contract/browsers/browsers-keyboard'],
  ['src/features/black-box', 'e2e/operations/black-box'],
  ['src/features/files', 'e2e/clients/files'],
  ['src/features/egress', 'faults/docker/docker-egress'],
  ['src/roles/provisioner', 'faults/servers', 'faults/server-restarting'],
  ['src/features/profiles', 'faults/profile-save-killed'],
  ['src/roles/timekeeper', 'e2e/operations/expiry', 'faults/servers'],
  ['src/kernel/event-store', 'load/ledger-under-load', 'faults/streams-killed'],
  ['src/commands', 'load/ledger-under-load'],
  ['src/kernel/domain', 'faults/recorded-lives', 'e2e/operations/expiry'],
  ['events', 'faults/recorded-lives', 'faults/versions'],
  [
    'projections',
    'e2e/api/read-model-away',
    'faults/redis-emptied',
    'e2e/operations/cli-projections',
  ],
  ['src/roles/gateway/vnc', 'integration/gateway/viewer'],
  ['src/roles/gateway/bidi', 'integration/gateway/bidi'],
  ['src/roles/gateway', 'faults/strangers/rude-clients', 'e2e/clients/other-doors'],
  ['src/features/mcp', 'e2e/clients/mcp-killed'],
  ['src/features/pages', 'integration/api/pages/visits', 'e2e/pages/one-call-ends'],
  ['src/roles/api', 'integration/api/docs-pages', 'e2e/clients/generated-client'],
  ['src/roles/api', 'e2e/clients/other-doors'],
  ['src/apps/client', 'e2e/clients/client-examples', 'e2e/operations/client-package'],
  ['test/examples', 'e2e/clients/client-examples'],
  ['src/apps/cli', 'e2e/clients/cli-events', 'e2e/operations/cli-past'],
  ['src/apps/doctor', 'e2e/operations/doctor'],
  ['src/apps/dashboard', 'e2e/dashboard/drive', 'e2e/dashboard/list', 'e2e/dashboard/session'],
  ['test/support/gate', 'integration/gate/gate'],
  ['src/start/embedded', 'integration/embedded/supervise', 'e2e/operations/shutdown'],
  ['src/start', 'e2e/operations/shutdown', 'e2e/operations/least-privilege'],
  ['src/features/nats-tenants', 'faults/permission-gone'],
  ['src/kernel/telemetry', 'integration/telemetry/traces', 'integration/telemetry/alert-rules'],
  ['deploy', 'integration/deploy/proxy', 'e2e/operations/split-features', 'faults/deploy/one-host'],
  ['deploy', 'e2e/operations/least-privilege'],
  ['src/start/edge', 'integration/deploy/proxy', 'e2e/operations/split-features'],
  ['events', 'e2e/operations/split-features'],
  ['src/features/recordings', 'e2e/operations/split-features'],
  ['src/features/recordings/recorder', 'e2e/operations/split-features'],
];

/**
 * They install packages of others: a registry that stands still would make a change red, so that
 * they wait for the night even where the change edits them.
 */
const NIGHT_ALONE = [
  'e2e/clients/chromium-bidi',
  'e2e/clients/event-readers',
  'e2e/clients/example-projects',
  'e2e/clients/python-client',
  'e2e/clients/webdriver',
];

/** The long files that the change of this checkout is about, as paths from the project's top. */
export function chosenFiles(root: string): string[] {
  const long = globSync('test/**/*.test.ts', { cwd: root }).filter(isLong);
  return choose(changedFiles(root), long.toSorted(), readDurations(root));
}

/**
 * First the long files that the change itself edits, then those that prove what it touches, as many
 * as fit into three minutes.
 */
export function choose(changed: readonly string[], long: readonly string[], durations: Durations) {
  const telling = changed.filter((file) => !isDocument(file));
  const proofs = PROOFS.filter(([path]) => telling.some((file) => isBelow(file, path)));
  const named = proofs.flatMap(([, ...tests]) => tests);
  const wanted = new Set([
    ...changed.filter((file) => long.includes(file)),
    ...named.flatMap((name) => long.filter((file) => isNamed(file, name))),
  ]);
  let left = SECONDS_MAX;
  return [...wanted].filter((file) => {
    if (NIGHT_ALONE.some((name) => isNamed(file, name))) return false;
    const seconds = durations[file] ?? UNKNOWN_SECONDS;
    if (seconds > left) return false;
    left -= seconds;
    return true;
  });
}

/** The tests that the table names: each has to exist. */
export const provingTests = [...PROOFS.flatMap(([, ...tests]) => tests), ...NIGHT_ALONE];

export function isNamed(file: string, name: string): boolean {
  return file === `test/${name}.long.test.ts` || file === `test/${name}.soak.test.ts`;
}

const isLong = (file: string): boolean => tierOf(file) === 'nightly';

const isBelow = (file: string, path: string): boolean => file.startsWith(`${path}/`);
