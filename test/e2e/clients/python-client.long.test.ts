import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createClient, type Client } from '#src/apps/client/client.ts';
import { readOpenApi } from '#src/start/read-openapi.ts';
import { installPython } from '#test/support/clients/python-packages.ts';
import { scratchDir } from '#test/support/scratch.ts';
import { DEV_KEY } from '#test/support/service/service.ts';
import { startRealService, type RealService } from '#test/support/service/real-session.ts';

/** The wheel of the Python client, in an environment of its own, against real browsers. */

const run = promisify(execFile);
const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
const PACK = join(ROOT, 'src/apps/client/python/pack.mjs');
/** For what hangs. */
const PACK_MS = 600_000;

let folder: Awaited<ReturnType<typeof scratchDir>>;
let service: RealService;
let client: Client;
let python: string;
beforeAll(async () => {
  folder = await scratchDir();
  const { stdout } = await run(process.execPath, [PACK, folder.path], { timeout: PACK_MS });
  python = await installPython(folder.path, [stdout.trim(), 'playwright==1.65.2']);
  service = await startRealService();
  client = createClient({ url: service.apiUrl, apiKey: DEV_KEY });
}, PACK_MS * 3);
afterAll(async () => {
  await service?.[Symbol.asyncDispose]();
  await folder?.[Symbol.asyncDispose]();
});

/** What a program prints as JSON; it has the service and the names of the client. */
async function answerOf(program: string): Promise<unknown> {
  const { stdout } = await run(python, ['-c', `${PRELUDE}\n${program}`, service.apiUrl, DEV_KEY]);
  return JSON.parse(stdout) as unknown;
}

const PRELUDE = `
import asyncio, httpx, json, sys
from browser_session_service.service import (
    AsyncService, NoAnswer, NotReady, Service, ServiceError, checked)
from browser_session_service.api.sessions import get_session, list_sessions, stop_session
url, key = sys.argv[1:]
def refusal(call):
    try:
        call()
    except ServiceError as error:
        return [error.error, error.code, error.context]
`;

/** A proxy that answers some requests itself, by what `instead` has, and passes the others on. */
const PROXY = `
class Proxy(httpx.BaseTransport, httpx.AsyncBaseTransport):
    def __init__(self, *instead):
        self.instead = list(instead)
        self.sync, self.others = httpx.HTTPTransport(), httpx.AsyncHTTPTransport()
    def handle_request(self, request):
        return self.instead.pop(0) if self.instead else self.sync.handle_request(request)
    async def handle_async_request(self, request):
        if self.instead:
            return self.instead.pop(0)
        return await self.others.handle_async_request(request)
def page(status):
    return httpx.Response(status, html='<h1>A proxy</h1>')
def pages(): return [page(503) for _ in range(4)]
`;

describe('the Python client', () => {
  it('has every operation but the streams of events', async () => {
    const { paths } = await readOpenApi();
    const wanted = Object.values(paths)
      .flatMap((methods) => Object.values(methods))
      .map(({ operationId }) => operationId.replaceAll(/[A-Z]/g, (one) => `_${one.toLowerCase()}`))
      .filter((name) => !name.startsWith('stream_'));
    const found = (await answerOf(`
import pkgutil, browser_session_service.api as api
names = [m.name for m in pkgutil.walk_packages(api.__path__, f'{api.__name__}.') if not m.ispkg]
print(json.dumps([name.split('.')[-1] for name in names]))
`)) as string[];
    expect(found.toSorted()).toEqual(wanted.toSorted());
  });

  it('creates an active session and stops it when its block is left, also by an error', async () => {
    const seen = (await answerOf(`
with Service(url, key) as service:
    with service.session(session_name='first', labels={'team': 'web'}) as session:
        one = [session.id, session.status, session.labels.to_dict()]
    try:
        with service.session() as session:
            two = session.id
            raise KeyError(two)
    except KeyError:
        pass
    listed = checked(list_sessions.sync_detailed(client=service.client, limit=2))
    print(json.dumps([one, two, [session.id for session in listed.sessions]]))
`)) as [[string, string, object], string, string[]];
    const [[first, status, labels], second, listed] = seen;
    expect([status, labels]).toEqual(['active', { team: 'web' }]);
    expect(listed).toEqual([second, first]);
    for (const id of [first, second])
      expect(await client.sessions.get(id)).toMatchObject({
        status: expect.stringMatching(/^stopp/),
      });
  });

  it('does the same in asyncio, several at once', async () => {
    const ids = (await answerOf(`
async def one(service):
    async with service.session() as session:
        assert session.status == 'active' and session.cdp_url.startswith('ws')
        return session.id
async def main():
    async with AsyncService(url, key) as service:
        return await asyncio.gather(*(one(service) for _ in range(3)))
print(json.dumps(asyncio.run(main())))
`)) as string[];
    expect(new Set(ids).size).toBe(3);
    for (const id of ids)
      expect(await client.sessions.get(id)).toMatchObject({
        status: expect.stringMatching(/^stopp/),
      });
  });

  it('raises a refusal with its name, code and context', async () => {
    const seen = await answerOf(`
with Service(url, key) as service, Service(url, 'bss_dev_wrong') as stranger:
    print(json.dumps([
        refusal(lambda: checked(get_session.sync_detailed(client=service.client, id='ses_no'))),
        refusal(lambda: service.create(duration='99h')),
        refusal(lambda: stranger.create()),
    ]))
`);
    expect(seen).toEqual([
      ['SESSION_NOT_FOUND', 404, { session_id: 'ses_no' }],
      ['INVALID_DURATION', 400, { duration: '99h' }],
      ['UNAUTHORIZED', 401, {}],
    ]);
  });

  it('raises the refusal of a field that there is not, also inside another', async () => {
    const seen = (await answerOf(`
async def in_asyncio():
    async with AsyncService(url, key) as service:
        await service.create(durration='30m')
with Service(url, key) as service:
    print(json.dumps([
        refusal(lambda: service.create(durration='30m')),
        refusal(lambda: service.create(egress={'alow': ['a.com']})),
        refusal(lambda: asyncio.run(in_asyncio())),
    ]))
`)) as unknown[];
    for (const one of seen) expect(one).toMatchObject(['INVALID_REQUEST', 400, {}]);
    expect(seen.map((one) => JSON.stringify(one))).toEqual([
      expect.stringContaining('durration'),
      expect.stringContaining('alow'),
      expect.stringContaining('durration'),
    ]);
  });

  it('asks again where a proxy answered', async () => {
    const ids = (await answerOf(`${PROXY}
def of_a_proxy(): return [page(503), page(520), httpx.Response(502, json={'message': 'no'})]
def one():
    proxy = Proxy(*of_a_proxy())
    with Service(url, key, httpx_args={'transport': proxy}) as service:
        with service.session() as session:
            proxy.instead = [page(200), page(302), httpx.Response(500, json=[])]
        assert proxy.instead == []
        return session.id
async def other():
    proxy = Proxy(*of_a_proxy())
    async with AsyncService(url, key, httpx_args={'transport': proxy}) as service:
        async with service.session() as session:
            proxy.instead = [page(200), page(302), httpx.Response(500, json=[])]
        assert proxy.instead == []
        return session.id
print(json.dumps([one(), asyncio.run(other())]))
`)) as string[];
    for (const id of ids)
      expect(await client.sessions.get(id)).toMatchObject({
        status: expect.stringMatching(/^stopp/),
      });
  });

  it('raises NoAnswer where a proxy answers alone, or nothing does', async () => {
    const seen = await answerOf(`${PROXY}
def failure(call):
    try:
        call()
    except NoAnswer as error:
        return str(error)
def of(*instead):
    return Service(url, key, httpx_args={'transport': Proxy(*instead)})
async def in_asyncio():
    async with AsyncService(url, key, httpx_args={'transport': Proxy(*pages())}) as service:
        await service.stop('ses_no')
async def generated():
    async with AsyncService(url, key, httpx_args={'transport': Proxy(page(520))}) as service:
        await get_session.asyncio_detailed(client=service.client, id='ses_no')
with of(*pages()) as service, of(page(502)) as once, \\
        Service('http://127.0.0.1:1', key) as absent:
    print(json.dumps([
        failure(lambda: service.stop('ses_no')),
        failure(lambda: get_session.sync_detailed(client=once.client, id='ses_no')),
        failure(lambda: absent.create()),
        failure(lambda: asyncio.run(in_asyncio())),
        failure(lambda: asyncio.run(generated())),
    ]))
`);
    const said = (status: number) => expect.stringMatching(RegExp(`status ${status} .*A proxy`));
    const refused = expect.stringContaining('refused');
    expect(seen).toEqual([said(503), said(502), refused, said(503), said(520)]);
  });

  it('raises a block’s own error, though its session could not be stopped', async () => {
    const seen = (await answerOf(`${PROXY}
def one():
    proxy = Proxy()
    with Service(url, key, httpx_args={'transport': proxy}) as service:
        try:
            with service.session() as session:
                proxy.instead = pages()
                raise KeyError('mine')
        except KeyError as error:
            service.stop(session.id)
            return error.__notes__
async def other():
    proxy = Proxy()
    async with AsyncService(url, key, httpx_args={'transport': proxy}) as service:
        try:
            async with service.session() as session:
                proxy.instead = pages()
                raise KeyError('mine')
        except KeyError as error:
            await service.stop(session.id)
            return error.__notes__
print(json.dumps([one(), asyncio.run(other())]))
`)) as string[][];
    const note = expect.stringMatching(/^ses_\S+ was not stopped: .*status 503/);
    expect(seen).toEqual([[note], [note]]);
  });

  it('reads a picture as bytes', async () => {
    const begin = await answerOf(`
from browser_session_service.api.sessions import get_session_screenshot
with Service(url, key) as service, service.session() as session:
    answer = get_session_screenshot.sync_detailed(client=service.client, id=session.id)
    print(json.dumps(checked(answer).payload.read(3).hex()))
`);
    // A JPEG's first bytes.
    expect(begin).toBe('ffd8ff');
  });

  it('stops a session that is not active in time', async () => {
    const seen = (await answerOf(`
from browser_session_service import service as module
with Service(url, key) as service:
    # A create that is answered at once, and no time to wait.
    create = module.create_session
    def at_once(**arguments):
        return create.sync_detailed(**arguments, prefer='respond-async')
    module.create_session = type('AtOnce', (), {'sync_detailed': staticmethod(at_once)})
    try:
        service.create(wait=-1, egress={'deny': ['example.com']})
    except NotReady as error:
        print(json.dumps(error.session.id))
`)) as string;
    expect(await client.sessions.get(seen)).toMatchObject({
      status: expect.stringMatching(/^stopp/),
    });
  });

  it('leaves no session behind where the create itself is cancelled or interrupted', async () => {
    const ids = (await answerOf(`
import os, signal, threading
# A browser of its own, which is launched: the create is under way for a while.
fields = {'egress': {'deny': ['example.com']}}
def made(name, listed):
    return next((one.id for one in listed.sessions if one.session_name == name), None)
async def cancelled():
    async with AsyncService(url, key) as service:
        create = asyncio.create_task(service.create(session_name='cancelled', **fields))
        found = None
        while found is None:
            listed = await list_sessions.asyncio_detailed(client=service.client, limit=5)
            found = made('cancelled', checked(listed))
        assert not create.done()
        create.cancel()
        try:
            await create
        except asyncio.CancelledError:
            return found
def interrupt(found):
    with Service(url, key) as service:
        while not found:
            listed = list_sessions.sync_detailed(client=service.client, limit=5)
            if one := made('interrupted', checked(listed)):
                found.append(one)
    os.kill(os.getpid(), signal.SIGINT)
def interrupted():
    found = []
    with Service(url, key) as service:
        threading.Thread(target=interrupt, args=[found]).start()
        try:
            service.create(session_name='interrupted', **fields)
        except KeyboardInterrupt:
            return found[0]
print(json.dumps([asyncio.run(cancelled()), interrupted()]))
`)) as string[];
    expect(ids.every((id) => id.startsWith('ses_'))).toBe(true);
    for (const id of ids)
      expect(await client.sessions.get(id)).toMatchObject({
        status: expect.stringMatching(/^stopp/),
      });
  });

  it('reads a download of Playwright, which finds none on its own machine', async () => {
    const example = join(ROOT, 'test/examples/python/files_example.py');
    const { stdout } = await run(python, [example, service.apiUrl, DEV_KEY]);
    expect(stdout.trim()).toBe('ann.txt Hello Ann');
  });

  it('gives Playwright for Python an address that it drives the page by', async () => {
    const example = join(ROOT, 'test/examples/python/playwright_example.py');
    const { stdout } = await run(python, [example, service.apiUrl, DEV_KEY]);
    expect(stdout.trim()).toBe('Hello Ada from by-python');
    const { sessions } = await client.sessions.list({ limit: 1 });
    expect(sessions).toMatchObject([
      { session_name: 'by-python', status: expect.stringMatching(/^stopp/) },
    ]);
  });
});
