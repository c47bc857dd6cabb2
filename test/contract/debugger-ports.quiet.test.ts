import { expect, test } from 'vitest';
import {
  HALF_A_HEADER,
  isClosed,
  openAfter,
  startWithPorts,
} from '#test/support/gateway/debugger-ports.ts';

test('closing a port closes clients that have sent nothing or half a header yet', async () => {
  const { site, ask, ticket } = await startWithPorts(2);
  await using _ = site;
  const { address } = await ask('POST', ticket('s1'));
  const silent = await openAfter(address, '');
  const half = await openAfter(address, HALF_A_HEADER);
  // Answered after both: the gateway has taken them.
  expect(await isClosed(address)).toBe(false);
  const began = performance.now();
  expect(await ask('DELETE', ticket('s1'))).toMatchObject({ status: 200, body: { closed: 1 } });
  await Promise.all([silent.closed, half.closed]);
  expect(performance.now() - began).toBeLessThan(8_000); // less than any limit of a silent client
  expect((await ask('POST', ticket('s1'))).status).toBe(200);
});

test('a client of a port that sends half a header is closed after 10 s', async () => {
  const { site, ask, ticket } = await startWithPorts(2);
  await using _ = site;
  const { address } = await ask('POST', ticket('s1'));
  await Promise.all([
    openAfter(address, '').then(({ closed }) => closed),
    openAfter(address, HALF_A_HEADER).then(({ closed }) => closed),
  ]);
  expect(await isClosed(address)).toBe(false);
});
