import { expect, test } from 'vitest';
import { keepDownloads } from '#src/roles/gateway/cdp/keep-downloads.ts';

const command = (method: string, params: object, more: object = {}) =>
  JSON.stringify({ id: 7, method, params, ...more });

function kept(message: string): unknown {
  const instead = keepDownloads(message);
  return instead === null ? null : (JSON.parse(instead) as unknown);
}

test.for(['allow', 'allowAndName', 'default'])(
  '%s keeps downloads in the session’s folder',
  (behavior) => {
    const params = {
      behavior,
      downloadPath: '/home/me',
      browserContextId: 'C',
      eventsEnabled: true,
    };
    expect(kept(command('Browser.setDownloadBehavior', params))).toEqual({
      id: 7,
      method: 'Browser.setDownloadBehavior',
      params: { ...params, behavior: 'allowAndName', downloadPath: 'downloads' },
    });
  },
);

test('a client that wants no downloads gets none', () => {
  expect(kept(command('Browser.setDownloadBehavior', { behavior: 'deny' }))).toBeNull();
  expect(kept(command('Page.setDownloadBehavior', { behavior: 'deny' }))).toBeNull();
});

test('the older command of a page becomes that of the browser', () => {
  const params = { behavior: 'allow', downloadPath: 'C:\\Users\\me' };
  expect(kept(command('Page.setDownloadBehavior', params, { sessionId: 'S' }))).toEqual({
    id: 7,
    sessionId: 'S',
    method: 'Browser.setDownloadBehavior',
    params: { behavior: 'allowAndName', downloadPath: 'downloads' },
  });
});

test('a command in an envelope to a page is replaced, too', () => {
  const message = command('Page.setDownloadBehavior', { behavior: 'allow', downloadPath: '/x' });
  const seen = kept(command('Target.sendMessageToTarget', { message, sessionId: 'S' }));
  const { params } = seen as { params: { message: string; sessionId: string } };
  expect(params.sessionId).toBe('S');
  expect(JSON.parse(params.message)).toMatchObject({
    method: 'Browser.setDownloadBehavior',
    params: { downloadPath: 'downloads' },
  });
});

test('what the browser would refuse it refuses', () => {
  expect(kept(command('Browser.setDownloadBehavior', { behavior: 'often' }))).toBeNull();
  expect(kept(command('Browser.setDownloadBehavior', {}))).toBeNull();
  expect(kept('{"id":1,"method":"Browser.setDownloadBehavior"}')).toBeNull();
  expect(kept(command('Target.sendMessageToTarget', { message: 5 }))).toBeNull();
});
