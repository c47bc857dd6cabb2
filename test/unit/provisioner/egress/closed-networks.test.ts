import { networkInterfaces } from 'node:os';
import { expect, test } from 'vitest';
import { createOwnAddresses } from '#src/kernel/host/own-addresses.ts';
import { closedNetworks } from '#src/features/egress/closed-networks.ts';

const isClosed = closedNetworks(createOwnAddresses(['198.51.100.9'], async () => []));

test.each([
  ...['127.0.0.1', '10.1.2.3', '172.31.0.1', '192.168.0.1', '100.64.0.1', '0.0.0.0'],
  // The clouds' metadata services.
  ...['169.254.169.254', 'fd00:ec2::254'],
  ...['224.0.0.1', '255.255.255.255', '::1', '::', 'fe80::1', 'fc00::1', 'ff02::1'],
  // An IPv4 address in one of IPv6: mapped, translated, 6to4, Teredo.
  ...['::ffff:10.0.0.1', '::ffff:a00:1', '64:ff9b::a00:1', '2002:a00:1::1', '2001:0:a00:1::1'],
  ...['198.51.100.9', 'not an address'],
])('%s is closed', async (address) => {
  expect(await isClosed(address)).toBe(true);
});

test.each(['93.184.216.34', '198.51.100.10', '172.32.0.1', '2606:2800:220:1::1'])(
  '%s is open',
  async (address) => expect(await isClosed(address)).toBe(false),
);

test('each address of this machine is closed', async () => {
  const own = Object.values(networkInterfaces()).flatMap((one) => one ?? []);
  expect(own.length).toBeGreaterThan(0);
  for (const { address } of own) expect(await isClosed(address), address).toBe(true);
});
