import { expect, test } from 'vitest';
import { createAddressRing } from '#src/browsers/docker/addresses.ts';

const NETWORK = {
  name: 'n',
  bridge: 'b',
  gateway: '10.0.0.1',
  subnet: '10.0.0.0/29',
  isOurs: true,
};

test('every address of the network but the gateway’s comes before one comes again', () => {
  for (const random of [0, 0.4, 0.99]) {
    const next = createAddressRing(
      () => NETWORK,
      () => random,
    );
    const seen = Array.from({ length: 10 }, next);
    const all = ['10.0.0.2', '10.0.0.3', '10.0.0.4', '10.0.0.5', '10.0.0.6'];
    expect(seen.slice(0, 5).toSorted()).toEqual(all);
    expect(seen.slice(5)).toEqual(seen.slice(0, 5));
  }
});

test('the addresses are those of the present network', () => {
  let network = { ...NETWORK, gateway: '172.30.0.1', subnet: '172.30.0.0/16' };
  const next = createAddressRing(
    () => network,
    () => 0.5,
  );
  expect(next()).toBe('172.30.128.1');
  network = { ...network, gateway: '192.168.255.1', subnet: '192.168.240.0/20' };
  expect(next()).toMatch(/^192\.168\.2[45]\d\./);
});

test('the engine chooses the address on a network of which the service may not', () => {
  expect(createAddressRing(() => ({ ...NETWORK, isOurs: false }))()).toBeNull();
});
