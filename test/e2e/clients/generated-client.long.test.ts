import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { generateApi } from 'swagger-typescript-api';
import { expect, it } from 'vitest';
import { shareService } from '#test/support/shared/shared-service.ts';

/** A client that another project generates from the OpenAPI document. */

const run = promisify(execFile);
const MODULES = fileURLToPath(new URL('../../../node_modules', import.meta.url));
const TSC_OPTIONS =
  '--ignoreConfig --noEmit --strict --target es2024 --module nodenext ' +
  '--lib es2024,dom,dom.iterable --allowImportingTsExtensions --types node --typeRoots';

/** Every call is of the generated client; its answer is printed as one line of JSON. */
const PROGRAM = `
import { Api } from './client.ts';

const [baseUrl, key] = process.argv.slice(2);
const api = new Api({
  baseUrl,
  baseApiParams: { headers: { authorization: 'Bearer ' + key }, format: 'json' },
}).api;
const body = { session_name: 'generated', duration: '1h', labels: { team: 'web' } };
const { data: created } = await api.createSession(body);
const { data: read } = await api.getSession({ id: created.id });
const { data: list } = await api.listSessions({ label: ['team=web'], limit: 5 });
const { data: extended } = await api.extendSession({ id: created.id }, { duration: '30m' });
const { data: stopped } = await api.stopSession({ id: created.id });
const unknown = await api.getSession({ id: 'unknown' }).catch((reply) => reply.error);
const ids: string[] = list.sessions.map(({ id }) => id);
console.log(JSON.stringify({ created, read, ids, extended, stopped, unknown }));
`;

it('compiles, and creates, reads, lists, extends and deletes a session', async () => {
  await using shared = await shareService();
  const { service } = shared;
  const { key } = await shared.organization();
  const folder = await mkdtemp(join(tmpdir(), 'generated-client-'));
  try {
    await generateApi({
      url: `${service.apiUrl}/api/openapi.json`,
      output: folder,
      fileName: 'client.ts',
      generateUnionEnums: true,
      extractRequestParams: true,
      silent: true,
    });
    await writeFile(join(folder, 'package.json'), '{ "type": "module" }');
    const program = join(folder, 'program.ts');
    await writeFile(program, PROGRAM);
    const options = [...TSC_OPTIONS.split(' '), `${MODULES}/@types`];
    const compiled = run(`${MODULES}/.bin/tsc`, [...options, program]);
    const { stdout: flaws } = await compiled.catch((error: { stdout: string }) => error);
    expect(flaws).toBe('');
    const { stdout } = await run(process.execPath, [program, service.apiUrl, key]);
    const { created, read, ids, extended, stopped, unknown } = JSON.parse(stdout);
    expect(created).toMatchObject({ session_name: 'generated', labels: { team: 'web' } });
    expect(read).toMatchObject({ id: created.id, status: 'active', ended_at: null });
    expect(ids).toEqual([created.id]);
    expect(extended.message).toBe('Session extended by 30m.');
    expect(Date.parse(extended.expires_at) - Date.parse(created.expires_at)).toBe(30 * 60_000);
    expect(stopped.session_id).toBe(created.id);
    expect(unknown).toMatchObject({ error: 'SESSION_NOT_FOUND', code: 404 });
  } finally {
    await rm(folder, { recursive: true });
  }
});
