import { readFile } from 'node:fs/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { inspect, startDashboard, type Dashboard } from '#test/support/dashboard/dashboard.ts';
import { eventually } from '#test/support/service/service.ts';
import { looks } from './looks.ts';

/** The files of a session on its page: what its browser saved, and what people put there. */

let dashboard: Dashboard;
beforeAll(async () => {
  dashboard = await startDashboard({ FILES_FILE_MAX: '1MB' });
});
afterAll(() => dashboard?.[Symbol.asyncDispose]());

const read = async (path: string) => (await dashboard.service.request('GET', path)).body;
const file = (name: string, bytes: number) => ({
  name,
  mimeType: 'text/plain',
  buffer: Buffer.alloc(bytes, 'x'),
});

async function activeSession(): Promise<string> {
  const { id } = await dashboard.create({ session_name: 'with files' });
  const isActive = async () => (await read(`/api/sessions/${id}`)).status === 'active';
  await eventually(isActive, 'it is active');
  return id;
}

it.each(looks)('%s: files are put, refused, taken and removed, live', async (look) => {
  const id = await activeSession();
  await using tab = await dashboard.open(`/sessions/${id}`, look);
  const { page, faults } = tab;
  await page.getByText('There is no file now.').waitFor();
  const files = page.getByLabel('Files to upload');
  await files.setInputFiles([file('ä – 漢.txt', 5), file('report.csv', 48_200)]);
  await page.getByText('In the browser:').waitFor();
  const row = page.getByRole('table', { name: 'Files' }).getByRole('row');
  await row.filter({ hasText: 'report.csv' }).getByText('48.2 kB').waitFor();
  await files.setInputFiles([file('film.mkv', 1024 ** 2 + 1)]);
  await page.getByRole('alert').filter({ hasText: 'larger' }).waitFor();
  const section = page.getByRole('region', { name: 'Files' });
  await section.getByRole('listitem').filter({ hasText: 'film.mkv' }).waitFor();
  await page.getByRole('heading', { name: 'Files', exact: true }).scrollIntoViewIfNeeded();
  await inspect(page, 'session-files', look);

  const [download] = await Promise.all([
    page.waitForEvent('download'),
    page.getByRole('button', { name: 'Download ä – 漢.txt' }).press('Enter'),
  ]);
  expect(download.suggestedFilename()).toBe('ä – 漢.txt');
  expect(await readFile(await download.path(), 'utf8')).toBe('xxxxx');
  const [zip] = await Promise.all([
    page.waitForEvent('download'),
    page.getByRole('button', { name: 'All as a zip' }).click(),
  ]);
  expect(zip.suggestedFilename()).toBe(`${id}.zip`);
  await page.getByRole('button', { name: 'Remove ä – 漢.txt' }).press('Enter');
  await page.getByRole('dialog').getByRole('button', { name: 'Remove' }).press('Enter');
  await row.filter({ hasText: '漢' }).waitFor({ state: 'detached' });
  // By another client.
  await dashboard.service.request('DELETE', `/api/sessions/${id}/files/report.csv`);
  await page.getByText('There is no file now.').waitFor();
  // The browser itself tells of the refused request.
  expect(faults.filter((fault) => !fault.includes('413'))).toEqual([]);
});

it('files are there after the end, and cannot be changed then, nor by a viewer', async () => {
  const id = await activeSession();
  await using owner = await dashboard.open(`/sessions/${id}`);
  const key = await dashboard.keyOf('viewer');
  await using viewer = await dashboard.open(`/sessions/${id}`, { key });
  await viewer.page.getByText('There is no file now.').waitFor();
  await owner.page.getByLabel('Files to upload').setInputFiles([file('kept.txt', 5)]);
  for (const { page } of [owner, viewer])
    await page.getByRole('button', { name: 'Download kept.txt' }).waitFor();
  expect(await viewer.page.getByRole('button', { name: 'Upload files' }).count()).toBe(0);
  expect(await viewer.page.getByRole('button', { name: 'Remove kept.txt' }).count()).toBe(0);
  await dashboard.service.request('DELETE', `/api/sessions/${id}`);
  await owner.page.getByRole('button', { name: 'Upload files' }).waitFor({ state: 'detached' });
  const [download] = await Promise.all([
    owner.page.waitForEvent('download'),
    owner.page.getByRole('button', { name: 'Download kept.txt' }).click(),
  ]);
  expect(await readFile(await download.path(), 'utf8')).toBe('xxxxx');
});
