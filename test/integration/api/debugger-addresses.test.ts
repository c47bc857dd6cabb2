import { expect, test } from 'vitest';
import type { SessionState } from '#events/session.ts';
import { createDebuggerAddresses } from '#src/features/debugger-address/debugger-addresses.ts';
import { startSession } from '#test/support/gateway.fixture.ts';
import { freePort } from '#test/support/servers/ports.ts';

const session = { id: 's1', organizationId: 'org' } as SessionState;

/** What the API asks of this gateway for the session, and its warnings. */
function askFor(site: Awaited<ReturnType<typeof startSession>>, gatewayUrl = site.http) {
  const warnings: string[] = [];
  const addresses = createDebuggerAddresses({
    gatewayUrl,
    cdpUrl: ({ id }) => site.cdpUrl(id),
    log: { warn: (_fact: object, message?: string) => warnings.push(message ?? '') },
  });
  return { addresses, warnings };
}

test('a gateway opens and closes a port for the API’s caller', async () => {
  const port = await freePort();
  const debuggerPorts = { ports: [port], bind: '127.0.0.1', host: '127.0.0.1' };
  await using site = await startSession({ debuggerPorts });
  const { addresses } = askFor(site);
  expect(await addresses.open(session, null)).toEqual({ address: `127.0.0.1:${port}` });
  expect(await addresses.close(session, null)).toEqual({ closed: 1 });
});

test('a gateway’s refusals are passed on with the session’s id', async () => {
  await using site = await startSession();
  const { addresses, warnings } = askFor(site);
  expect(await addresses.open(session, null)).toMatchObject({
    code: 'DEBUGGER_PORTS_OFF',
    context: { session_id: 's1' },
  });
  site.directory.set('s1', { status: 'ended', reason: 'idle' });
  const ended = { code: 'SESSION_ENDED', context: { session_id: 's1', ended_reason: 'idle' } };
  expect(await addresses.close(session, null)).toMatchObject(ended);
  expect(warnings).toEqual([]);
});

test('where no gateway answers, the API says that the gateway is unavailable', async () => {
  await using site = await startSession();
  const away = askFor(site, `http://127.0.0.1:${await freePort()}`);
  const unavailable = { code: 'UNAVAILABLE', context: { part: 'gateway' } };
  expect(await away.addresses.open(session, null)).toMatchObject(unavailable);
  expect(away.warnings).toHaveLength(1);
  // Something that is no gateway, or one of another installation.
  site.directory.clear();
  expect(await askFor(site).addresses.open(session, null)).toMatchObject(unavailable);
});
