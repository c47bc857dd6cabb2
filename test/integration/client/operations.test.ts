import { expect, it, test } from 'vitest';
import type { Client } from '#src/apps/client/client.ts';
import { readOpenApi } from '#src/start/read-openapi.ts';
import { json, startScripted, stream } from '#test/support/clients/scripted-service.ts';

const NEW = { name: 'n' };
const BYTES = new Uint8Array([1]);
const ID = 'ses_1';

/** By operation of the OpenAPI document: the call of the client that sends its request. */
const calls: Record<string, (client: Client) => unknown> = {
  createSession: ({ sessions }) => sessions.create({}, { waitMs: 0 }),
  listSessions: ({ sessions }) => sessions.list(),
  getSession: ({ sessions }) => sessions.get(ID),
  updateSession: ({ sessions }) => sessions.update(ID, {}),
  stopSession: ({ sessions }) => sessions.stop(ID),
  getSessionAccess: ({ sessions }) => sessions.access(ID),
  rotateSessionAccess: ({ sessions }) => sessions.rotateAccess(ID),
  openDebuggerAddress: ({ sessions }) => sessions.openDebuggerAddress(ID),
  closeDebuggerAddress: ({ sessions }) => sessions.closeDebuggerAddress(ID),
  extendSession: ({ sessions }) => sessions.extend(ID, '1m'),
  getSessionHistory: ({ sessions }) => sessions.history(ID),
  getSessionWhy: ({ sessions }) => sessions.why(ID),
  stopSessions: ({ sessions }) => sessions.stopAll({ filter: {} }),
  getSessionScreenshot: ({ sessions }) => sessions.screenshot(ID),
  getSessionThumbnail: ({ sessions }) => sessions.thumbnail(ID),
  getSessionRecording: ({ sessions }) => sessions.recording(ID),
  getRecordingSegment: ({ sessions }) => sessions.recordingSegment(ID, 's'),
  listSessionFiles: ({ sessions }) => sessions.listFiles(ID),
  getSessionFile: ({ sessions }) => sessions.downloadFile(ID, 'f'),
  putSessionFile: ({ sessions }) => sessions.uploadFile(ID, BYTES, NEW),
  deleteSessionFile: ({ sessions }) => sessions.removeFile(ID, 'f'),
  getSessionFilesZip: ({ sessions }) => sessions.filesZip(ID),
  streamSessionEvents: ({ sessions }) => sessions.events(ID).next(),
  requestHandoff: ({ sessions }) => sessions.handoff(ID, { instructions: 'i' }),
  listHandoffs: ({ sessions }) => sessions.listHandoffs(ID),
  getHandoff: ({ sessions }) => sessions.getHandoff(ID, 'h'),
  takeHandoff: ({ sessions }) => sessions.takeHandoff(ID, 'h'),
  completeHandoff: ({ sessions }) => sessions.completeHandoff(ID, 'h', { success: true }),
  createShare: ({ sessions }) => sessions.createShare(ID, { mode: 'view', expires_in: '1h' }),
  listShares: ({ sessions }) => sessions.listShares(ID),
  revokeShare: ({ sessions }) => sessions.revokeShare(ID, 's'),

  takeScreenshot: (client) => client.screenshot({ url: 'u' }),
  printPdf: (client) => client.pdf({ url: 'u' }),
  getPageContent: (client) => client.content({ url: 'u' }),

  createProfile: ({ profiles }) => profiles.create(NEW),
  listProfiles: ({ profiles }) => profiles.list(),
  getProfile: ({ profiles }) => profiles.get('p'),
  removeProfile: ({ profiles }) => profiles.remove('p'),
  saveSessionProfile: ({ profiles }) => profiles.save(ID),
  listExtensions: ({ extensions }) => extensions.list(),
  uploadExtension: ({ extensions }) => extensions.upload(BYTES),
  getExtension: ({ extensions }) => extensions.get('e'),
  deleteExtension: ({ extensions }) => extensions.remove('e'),

  createWebhook: ({ webhooks }) => webhooks.create({ url: 'https://hooks.example.com/' }),
  listWebhooks: ({ webhooks }) => webhooks.list(),
  getWebhook: ({ webhooks }) => webhooks.get('w'),
  changeWebhook: ({ webhooks }) => webhooks.change('w', { disabled: false }),
  deleteWebhook: ({ webhooks }) => webhooks.remove('w'),
  rotateWebhookSecret: ({ webhooks }) => webhooks.rotateSecret('w'),
  listDeliveries: ({ webhooks }) => webhooks.deliveries('w'),
  getDelivery: ({ webhooks }) => webhooks.delivery('w', 'd'),
  replayWebhook: ({ webhooks }) => webhooks.replay('w', 1),

  streamEvents: (client) => client.events().next(),
  getOrganization: ({ organization }) => organization.get(),
  allowOrigins: ({ organization }) => organization.allowOrigins([]),
  listKeys: ({ organization }) => organization.listKeys(),
  issueKey: ({ organization }) => organization.issueKey({ role: 'viewer' }),
  revokeKey: ({ organization }) => organization.revokeKey('k'),
  getUsage: ({ organization }) => organization.usage(),
  exportAudit: ({ organization }) => organization.exportAudit(),
  getPool: ({ organization }) => organization.pool(),
  getQueue: ({ organization }) => organization.queue(),
  listOpenHandoffs: ({ organization }) => organization.handoffs(),

  getOperator: ({ operator }) => operator.get(),
  listOrganizations: ({ operator }) => operator.organizations(),
  listServers: ({ operator }) => operator.servers(),
  drainServer: ({ operator }) => operator.drain('s'),
  undrainServer: ({ operator }) => operator.undrain('s'),
  getOperatorPool: ({ operator }) => operator.pool(),
  listPoolDecisions: ({ operator }) => operator.poolDecisions(),
  listOperatorEvents: ({ operator }) => operator.events(),
  getOperatorQueue: ({ operator }) => operator.queue(),
  listReadModels: ({ operator }) => operator.readModels(),
  rebuildReadModel: ({ operator }) => operator.rebuildReadModel('r'),
  listDeadLetters: ({ operator }) => operator.deadLetters(),
  retryDeadLetter: ({ operator }) => operator.retryDeadLetter('d'),
  skipDeadLetter: ({ operator }) => operator.skipDeadLetter('d', { reason: 'r' }),
  getAudits: ({ operator }) => operator.audits(),
  runAudit: ({ operator }) => operator.runAudit(),

  getStatus: ({ service }) => service.status(),
  getHealth: ({ service }) => service.health(),
  getReadiness: ({ service }) => service.ready(),
  getMetrics: ({ service }) => service.metrics(),
  getOpenApi: ({ service }) => service.openApi(),
  getAsyncApi: ({ service }) => service.asyncApi(),
  getDocs: ({ service }) => service.docs(),
  getEventDocs: ({ service }) => service.eventDocs(),
  getLicenses: ({ service }) => service.licenses(),
};

const document = await readOpenApi();
const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
  Object.entries(methods).map(([method, { operationId }]) => ({ path, method, operationId })),
);

it('has a call for every operation of the OpenAPI document', () => {
  expect(Object.keys(calls).toSorted()).toEqual(
    operations.map(({ operationId }) => operationId).toSorted(),
  );
});

test.each(operations)('$operationId sends $method $path', async ({ operationId, method, path }) => {
  const isStream = operationId.startsWith('stream');
  const answer = isStream ? stream(['id: 1\nevent: end\ndata: {}\n\n']) : json(200, {});
  await using service = await startScripted([answer], { retriesMax: 0 });
  // What an empty answer means to the caller is tested elsewhere.
  await Promise.resolve(calls[operationId]?.(service.client)).catch(() => undefined);
  const [asked] = service.asked;
  expect(asked?.method).toBe(method.toUpperCase());
  const pattern = new RegExp(`^${path.replaceAll('.', '\\.').replaceAll(/\{\w+\}/g, '[^/]+')}$`);
  expect(asked?.url).toMatch(pattern);
});
