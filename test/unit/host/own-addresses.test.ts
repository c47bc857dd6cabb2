import { networkInterfaces } from 'node:os';
import { expect, it } from 'vitest';
import { createOwnAddresses } from '#src/kernel/host/own-addresses.ts';

const HOSTS = ['bss.example.org', 'gateway', '203.0.113.8', '2001:db8::8', '0.0.0.0', 'no host/'];

function opened() {
  const asked: string[] = [];
  const names: Record<string, string[]> = { 'bss.example.org': ['203.0.113.7', '2001:db8::7'] };
  const clock = { ms: 0 };
  const own = createOwnAddresses(
    HOSTS,
    async (name) => {
      asked.push(name);
      return names[name] ?? [];
    },
    () => clock.ms,
  );
  return { own, asked, names, clock };
}

it.each([
  ['bss.example.org', true],
  ['BSS.Example.org.', true],
  ['203.0.113.8', true],
  ['[2001:db8:0:0::8]', true],
  ['gateway', true],
  ['www.bss.example.org', false],
  ['203.0.113.9', false],
  ['no host/', false],
])('the host %s is one of the service: %s', (host, isOwn) => {
  expect(opened().own.isOwnHost(host)).toBe(isOwn);
});

it('addresses of its names, of its machine and those that are given are its own', async () => {
  const { own } = opened();
  const here = Object.values(networkInterfaces()).flatMap((one) => one ?? []);
  const addresses = [...here.map(({ address }) => address), '203.0.113.7', '2001:db8::7'];
  for (const address of [...addresses, '203.0.113.8', '::ffff:203.0.113.7', 'not an address'])
    expect([address, await own.isOwnAddress(address)]).toEqual([address, true]);
  for (const address of ['203.0.113.9', '2001:db8::9'])
    expect([address, await own.isOwnAddress(address)]).toEqual([address, false]);
});

it('names are looked up again after a while, and keep their addresses without an answer', async () => {
  const { own, asked, names, clock } = opened();
  names['gateway'] = ['203.0.113.30'];
  await own.isOwnAddress('203.0.113.7');
  clock.ms = 29_999;
  await own.isOwnAddress('203.0.113.7');
  expect(asked).toEqual(['bss.example.org', 'gateway']);
  names['bss.example.org'] = [];
  clock.ms = 30_000;
  expect(await own.isOwnAddress('203.0.113.7')).toBe(true);
  expect(asked).toHaveLength(4);
  names['bss.example.org'] = ['203.0.113.20'];
  clock.ms = 60_000;
  expect(await own.isOwnAddress('203.0.113.20')).toBe(true);
  expect(await own.isOwnAddress('203.0.113.7')).toBe(false);
});

it('after any pause the first question has the addresses of now, of one look for all that ask', async () => {
  const { own, asked, names, clock } = opened();
  expect(await own.isOwnAddress('203.0.113.20')).toBe(false);
  names['bss.example.org'] = ['203.0.113.20'];
  clock.ms = 7 * 24 * 3_600_000;
  const both = ['203.0.113.20', '203.0.113.7'].map((address) => own.isOwnAddress(address));
  expect(await Promise.all(both)).toEqual([true, false]);
  expect(asked).toEqual(['bss.example.org', 'gateway', 'bss.example.org', 'gateway']);
});

it('a name that has no answer is looked up again sooner, and no other one is', async () => {
  const { own, asked, names, clock } = opened();
  expect(await own.isOwnAddress('203.0.113.30')).toBe(false);
  names['gateway'] = ['203.0.113.30'];
  clock.ms = 2_000;
  expect(await own.isOwnAddress('203.0.113.30')).toBe(true);
  expect(asked).toEqual(['bss.example.org', 'gateway', 'gateway']);
});

it('an answer without IPv4 keeps the IPv4 addresses of the one before', async () => {
  const { own, names, clock } = opened();
  await own.isOwnAddress('203.0.113.7');
  names['bss.example.org'] = ['2001:db8::20'];
  clock.ms = 30_000;
  expect(await own.isOwnAddress('203.0.113.7')).toBe(true);
  expect(await own.isOwnAddress('2001:db8::20')).toBe(true);
  expect(await own.isOwnAddress('2001:db8::7')).toBe(false);
});

it('what needs no name server is answered without one', async () => {
  const silent = new Promise<string[]>(() => undefined);
  const own = createOwnAddresses(HOSTS, () => silent);
  const here = Object.values(networkInterfaces()).flatMap((one) => one ?? []);
  for (const { address } of [...here, { address: '203.0.113.8' }, { address: '2001:db8:0::8' }])
    expect([address, await own.isOwnAddress(address)]).toEqual([address, true]);
});
