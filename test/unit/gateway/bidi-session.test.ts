import { describe, expect, test } from 'vitest';
import {
  attachedCapabilities,
  createBidiSession,
  type MapperMessage,
} from '#src/roles/gateway/bidi/bidi-session.ts';

const OF_MAPPER = {
  sessionId: 'unknown',
  capabilities: {
    acceptInsecureCerts: true,
    browserName: 'HeadlessChrome/156.0.8078.108',
    browserVersion: '@abc',
    platformName: '',
    setWindowRect: false,
    userAgent: 'Mozilla/5.0',
    webSocketUrl: '',
  },
};

/** A session whose mapper gives the answers of the test. */
function open() {
  const commands: { id: number; method: string; params: unknown }[] = [];
  const answers: Record<string, unknown>[] = [];
  let closed = 0;
  const session = createBidiSession({
    toMapper: (command) => void commands.push(command),
    toClient: async (message) => void answers.push(message as Record<string, unknown>),
    close: () => void (closed += 1),
    newId: () => 'an-id',
  });
  const send = (message: unknown) =>
    session.take({ text: JSON.stringify(message), isBinary: false });
  const settle = () => new Promise((resolve) => setImmediate(resolve));
  return {
    ...{ session, commands, answers, send, settle },
    closed: () => closed,
    /** The answer to the last command of the mapper. */
    async answer(message: MapperMessage) {
      session.takeOfMapper({ id: commands.at(-1)?.id ?? null, ...message });
      await settle();
    },
    async begin(capabilities: object = {}) {
      send({ id: 1, method: 'session.new', params: { capabilities } });
      await this.answer({ type: 'success', result: OF_MAPPER });
      return answers.splice(0);
    },
  };
}
const status = { id: 5, method: 'session.status', params: {} };
const getTree = { id: 6, method: 'browsingContext.getTree', params: {} };

describe('without a session', () => {
  test('there can be one, and only that is answered', () => {
    const { send, answers, commands } = open();
    send(status);
    send(getTree);
    send({ id: 7, method: 'session.end', params: {} });
    send({ id: 8, method: 'no.such', params: {} });
    expect(answers).toEqual([
      { type: 'success', id: 5, result: { ready: true, message: expect.any(String) } },
      expect.objectContaining({ type: 'error', id: 6, error: 'invalid session id' }),
      expect.objectContaining({ type: 'error', id: 7, error: 'invalid session id' }),
      expect.objectContaining({ type: 'error', id: 8, error: 'unknown command' }),
    ]);
    expect(commands).toEqual([]);
  });

  test('an answer names the channel of its command', () => {
    const { send, answers } = open();
    for (const channel of ['one', '']) send({ ...status, 'goog:channel': channel });
    send({ ...getTree, 'goog:channel': 'two' });
    expect(answers.map((answer) => answer['goog:channel'])).toEqual(['one', undefined, 'two']);
  });

  test.each([
    ['no JSON', null],
    ['[]', null],
    ['{"id":-1,"method":"session.status","params":{}}', null],
    ['{"id":1.5,"method":"session.status","params":{}}', null],
    ['{"id":"1","method":"session.status","params":{}}', null],
    ['{"id":3,"params":{}}', 3],
    ['{"id":3,"method":"session.status"}', 3],
    ['{"id":3,"method":"session.status","params":[]}', 3],
  ])('what is no command is an invalid argument: %s', (text, id) => {
    const { session, answers } = open();
    session.take({ text, isBinary: false });
    expect(answers).toEqual([expect.objectContaining({ id, error: 'invalid argument' })]);
  });

  test('a message that is no text is an invalid argument', () => {
    const { session, answers } = open();
    session.take({ text: JSON.stringify(status), isBinary: true });
    expect(answers).toEqual([expect.objectContaining({ id: null, error: 'invalid argument' })]);
  });
});

describe('session.new', () => {
  test('answers with capabilities of the browser, and an id', async () => {
    const site = open();
    const alwaysMatch = { acceptInsecureCerts: true, unhandledPromptBehavior: { alert: 'ignore' } };
    const [answer] = await site.begin({ alwaysMatch: { ...alwaysMatch, browserVersion: '1' } });
    expect(site.commands[0]?.params).toEqual({ capabilities: { alwaysMatch } });
    expect(answer).toEqual({
      type: 'success',
      id: 1,
      result: {
        sessionId: 'an-id',
        capabilities: {
          acceptInsecureCerts: true,
          browserName: 'chrome',
          browserVersion: '156.0.8078.108',
          platformName: 'linux',
          setWindowRect: false,
          userAgent: 'Mozilla/5.0',
        },
      },
    });
  });

  test.each([
    [{}, 'invalid argument'],
    [{ capabilities: [] }, 'invalid argument'],
    [{ capabilities: { firstMatch: [] } }, 'invalid argument'],
    [{ capabilities: { alwaysMatch: { acceptInsecureCerts: 'yes' } } }, 'invalid argument'],
    [{ capabilities: { alwaysMatch: { nope: 1 } } }, 'invalid argument'],
    [{ capabilities: { firstMatch: [{ browserName: 'firefox' }] } }, 'session not created'],
    [{ capabilities: { alwaysMatch: { platformName: 'mac' } } }, 'session not created'],
  ])('refuses what W3C does: %j', (params, error) => {
    const { send, answers, commands } = open();
    send({ id: 4, method: 'session.new', params });
    expect(answers).toEqual([expect.objectContaining({ type: 'error', id: 4, error })]);
    expect(commands).toEqual([]);
    send(status);
    expect(answers[1]).toMatchObject({ result: { ready: true } });
  });

  test('can be tried again where the mapper has failed', async () => {
    const site = open();
    site.send({ id: 2, method: 'session.new', params: { capabilities: {} } });
    await site.answer({ type: 'error', stacktrace: 'at /srv/x.ts' });
    expect(site.answers.splice(0)).toEqual([{ type: 'error', id: 2 }]);
    expect(await site.begin()).toMatchObject([{ type: 'success', id: 1 }]);
  });

  test('comes before what was sent while it is done', async () => {
    const site = open();
    site.send({ id: 1, method: 'session.new', params: { capabilities: {} } });
    site.send(getTree);
    site.send({ id: 3, method: 'session.new', params: { capabilities: {} } });
    expect(site.commands).toHaveLength(1);
    await site.answer({ type: 'success', result: OF_MAPPER });
    expect(site.commands[1]).toEqual(getTree);
    expect(site.answers).toMatchObject([
      { type: 'success', id: 1 },
      { id: 3, error: 'session not created' },
    ]);
  });
});

describe('with a session', () => {
  test('commands, answers and events pass, and no error tells a path of this server', async () => {
    const site = open();
    await site.begin();
    site.send(getTree);
    site.send({ id: 7, method: 'browsingContext.nope', params: {} });
    expect(site.commands.slice(1)).toMatchObject([getTree, { method: 'browsingContext.nope' }]);
    const event = { type: 'event', method: 'log.entryAdded', params: { stacktrace: 'a page’s' } };
    const failed = { type: 'error', id: 7, error: 'unknown error', stacktrace: 'at /srv/x.ts' };
    for (const message of [event, { type: 'success', id: 6, result: {} }, failed])
      site.session.takeOfMapper(message);
    expect(site.answers).toEqual([
      event,
      { type: 'success', id: 6, result: {} },
      { type: 'error', id: 7, error: 'unknown error' },
    ]);
  });

  test('another cannot be begun', async () => {
    const site = open();
    await site.begin();
    site.send({ id: 9, method: 'session.new', params: { capabilities: {} } });
    site.send(status);
    expect(site.answers).toMatchObject([
      { id: 9, error: 'session not created' },
      { id: 5, result: { ready: false } },
    ]);
  });

  test('session.end is answered, and then the connection is closed', async () => {
    const site = open();
    await site.begin();
    site.send({ id: 9, method: 'session.end', params: {} });
    site.send(getTree);
    await site.settle();
    expect(site.answers[0]).toEqual({ type: 'success', id: 9, result: {} });
    expect(site.answers[1]).toMatchObject({ id: 6, error: 'invalid session id' });
    expect([site.closed(), site.commands.length]).toEqual([1, 1]);
  });
});

test('a client of a session of WebDriver has it at once, and ends it with its browser', async () => {
  const site = open();
  const asked = { acceptInsecureCerts: true, unhandledPromptBehavior: 'ignore' };
  const attached = site.session.attach(attachedCapabilities(JSON.stringify(asked)));
  expect(site.commands[0]?.params).toEqual({ capabilities: { alwaysMatch: asked } });
  await site.answer({ type: 'success', result: OF_MAPPER });
  await attached;
  expect(site.answers).toEqual([]);
  site.send(status);
  site.send({ id: 1, method: 'session.new', params: { capabilities: {} } });
  site.send({ id: 2, method: 'session.end', params: {} });
  await site.settle();
  expect(site.answers).toMatchObject([
    { id: 5, result: { ready: false } },
    { id: 1, error: 'session not created' },
    { id: 2, type: 'success' },
  ]);
  expect(site.commands[1]).toMatchObject({ method: 'browser.close' });
  expect(site.closed()).toBe(0);
});

test.each([[''], ['x'], ['[]'], ['{"nope":1}'], ['{"unhandledPromptBehavior":"x"}']])(
  'an address whose capabilities are not valid has none: %s',
  (text) => {
    expect(attachedCapabilities(text)).toEqual({});
  },
);
