import { expect, test } from 'vitest';
import { check } from '#src/apps/doctor/check.ts';
import type { HostFacts, InstallationFacts, ProgramFacts } from '#src/apps/doctor/facts.ts';

/** The doctor's finding about the program of WebDriver, where browsers are processes. */

const away = { failure: 'no answer', advice: 'start it', isBad: false };
const host: Omit<HostFacts, 'browserPrograms'> = {
  ...{ node: 'v24.0.0', dataDir: '/data', unwritable: null, openSecrets: [], ports: [] },
  ...{ freeBytes: 2 ** 40, totalBytes: 2 ** 40, openFilesMax: null },
};
const config: InstallationFacts['config'] = {
  ...{ isEmbedded: true, isProduction: false, unisolated: 'development', browsers: 'process' },
  ...{ hasProvisioner: true, secrets: new Map(), links: [] },
};

function findingsWith(browserPrograms: HostFacts['browserPrograms']) {
  const parts = { log: away, readModel: away, certificates: {}, engine: null, cluster: null };
  const found = check({ config, host: { ...host, browserPrograms }, ...parts }, 0);
  return found.filter((one) => one.check === 'browsers.driver');
}
const chromium: ProgramFacts = { path: '/usr/lib/chromium/chromium', version: '150.0.7871.100' };
const driver = (version: string | null): ProgramFacts => ({ path: '/bin/driver', version });

test('a driver of the browser’s major version is fine, and any other is bad', () => {
  const levelOf = (version: string | null) =>
    findingsWith({ chromium, chromedriver: driver(version) }).map(({ level }) => level);
  expect(levelOf('150.0.7871.100')).toEqual(['ok']);
  expect(levelOf('150.0.1.2')).toEqual(['ok']);
  expect(levelOf('149.0.7871.100')).toEqual(['bad']);
  expect(levelOf('15.0.7871.100')).toEqual(['bad']);
  expect(levelOf(null)).toEqual(['bad']);
});

test('a missing driver is a warning that names the package and the variable', () => {
  const [found] = findingsWith({ chromium, chromedriver: { missing: 'there is no chromedriver' } });
  expect(found).toMatchObject({
    level: 'warn',
    what: expect.stringContaining('no WebDriver'),
    advice: expect.stringMatching(/chromium-driver.*CHROMEDRIVER/s),
  });
});

test('without Chromium, or where browsers are elsewhere, the driver is not judged bad', () => {
  const missing = { missing: 'CHROMIUM: /nowhere is not a program' };
  expect(findingsWith({ chromium: missing, chromedriver: driver('150.0.0.0') })).toMatchObject([
    { level: 'warn', what: expect.stringContaining('/nowhere') },
  ]);
  expect(findingsWith(null)).toEqual([]);
});
