import { writeFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { onTestFinished } from 'vitest';
import type { BrowserExit } from '#src/browsers/browsers.ts';
import { nameOf } from '#src/browsers/kubernetes/naming.ts';
import { aSpec } from '#test/support/browsers/browsers-adapters.ts';
import type { openKubernetesBrowsers } from '#test/support/browsers/kubernetes-browsers.fixture.ts';
import { eventually } from '#test/support/service/service.ts';

/** A browser that runs, and the ends that are reported. */
export async function launched(opened: Awaited<ReturnType<typeof openKubernetesBrowsers>>) {
  const exits: BrowserExit[] = [];
  opened.browsers.onExit((exit) => exits.push(exit));
  const spec = aSpec();
  const browser = await opened.browsers.launch(spec);
  const end = async () => {
    await eventually(async () => exits.length > 0, 'the end of the browser is reported');
    return exits[0] as BrowserExit;
  };
  return { ...spec, browser, pod: nameOf(spec.workloadId), end };
}

/** A file that the test's end removes. @returns its path */
export function jsonFile(value: object): string {
  const path = `/tmp/bss-test-${process.pid}-${crypto.randomUUID()}.json`;
  writeFileSync(path, JSON.stringify(value));
  onTestFinished(() => rm(path, { force: true }));
  return path;
}
