import type Docker from 'dockerode';
import { expect, test } from 'vitest';
import { createClosedNetwork } from '#src/browsers/docker/egress/closed-network.ts';
import type { BrowserImage } from '#src/browsers/docker/browser-image.ts';
import type { Confinement } from '#src/browsers/docker/spec.ts';

const IMAGE: BrowserImage = {
  ...{ id: 'sha256:1', name: 'shop/browser:1', version: '150.0.7871.100', base: null },
  ...{ builtAt: 0, createdAt: 0, recipe: null, isLinked: true, hasRelay: true },
};

/** With an engine that only tells that it was asked. */
function closedNetwork() {
  const docker = {
    getNetwork: () => ({ inspect: () => Promise.reject(new Error('the engine was asked')) }),
  };
  const unused = { confinement: {} as Confinement, rulesImage: () => Promise.resolve('rules') };
  const log = { info: () => {}, warn: () => {} };
  return createClosedNetwork({ docker: docker as unknown as Docker, name: 'bss', ...unused, log });
}

test('an image without a relay gets no closed network, before anything is created', async () => {
  const opening = closedNetwork().openFor({ ...IMAGE, hasRelay: false });
  await expect(opening).rejects.toThrow(
    'the image shop/browser:1 has no relay (the label browser-session-service.egress=relay)',
  );
});

test('an image with a relay gets one', async () => {
  await expect(closedNetwork().openFor(IMAGE)).rejects.toThrow('the engine was asked');
});
