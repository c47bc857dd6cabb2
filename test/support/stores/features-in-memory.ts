import { generateKeyPairSync } from 'node:crypto';
import { createSigner } from '#src/features/archive/signature.ts';
import type { McpParts } from '#src/features/mcp/mcp.ts';
import { createOneCalls } from '#src/features/pages/one-calls.ts';
import { createDrivers } from '#src/features/webdriver/drivers.ts';
import { createWebhookSecrets } from '#src/features/webhooks/signature.ts';
import { createMemoryWebhookRecords } from '#src/features/webhooks/webhook-records.memory.ts';
import type { EventStore } from '#src/kernel/event-store/event-store.ts';
import { createOwnAddresses } from '#src/kernel/host/own-addresses.ts';
import { createMasterKeys } from '#src/kernel/master-keys.ts';
import type { Logger } from '#src/kernel/telemetry/logger.ts';
import { createMemoryRecords } from '#test/support/stores/memory-records.ts';

const JWK = { format: 'jwk' } as const;
/** The service's address outside. */
const OWN = '203.0.113.7';

/** `inside.example` leads inside, `alias.example` to the service, every other name does not. */
const resolveForTests = async (name: string) => {
  if (name === 'inside.example') return ['93.184.216.34', '10.1.2.3'];
  return name === 'alias.example' ? [OWN] : ['93.184.216.34'];
};

/** What the routes of the features need of a process, by their names, in memory. */
export async function openFeatures(given: {
  eventStore: EventStore;
  mcp: McpParts;
  /** Whether webhooks may lead to private addresses. */
  allowsPrivate: boolean;
  log: Logger;
}) {
  const { eventStore, mcp, allowsPrivate, log } = given;
  const own = createOwnAddresses(['bss.example.org'], async () => [OWN]);
  const signer = await createSigner(generateKeyPairSync('ed25519').privateKey.export(JWK));
  const webhooks = {
    records: createMemoryWebhookRecords(),
    ...createWebhookSecrets(createMasterKeys([Buffer.alloc(32, 'key')])),
    rules: { allowsPrivate, resolve: resolveForTests, own },
  };
  const opened: Readonly<Record<string, unknown>> = {
    'debugger-address': {
      open: async () => ({ address: '127.0.0.1:9300' }),
      close: async () => ({ closed: 1 }),
    },
    pages: createOneCalls({ log }),
    mcp,
    webdriver: {
      driverUrl: () => 'http://127.0.0.1:9/webdriver/no-gateway',
      drivers: createDrivers(),
    },
    webhooks,
    audit: {
      records: createMemoryRecords(eventStore),
      findSigner: () => Promise.resolve(signer),
    },
  };
  return { opened, webhooks, signer, ownAddresses: own };
}
