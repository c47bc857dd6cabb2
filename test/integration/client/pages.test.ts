import { expect, it } from 'vitest';
import { refusal } from '#test/support/clients/page-site.ts';
import { refuse, startScripted } from '#test/support/clients/scripted-service.ts';

it('a picture has its bytes, its session and its document', async () => {
  await using service = await startScripted([
    (response) =>
      void response
        .writeHead(200, {
          'content-type': 'image/png',
          'x-session-id': 'ses_1',
          'x-page-url': 'https://example.com/',
          'x-page-title': 'Gr%C3%BCn',
          'x-page-status': '404',
        })
        .end(Buffer.from([1, 2, 3])),
    (response) => void response.writeHead(200, { 'content-type': 'application/pdf' }).end('%PDF'),
  ]);
  const { client, asked } = service;
  expect(await client.screenshot({ url: 'https://example.com', full_page: true })).toEqual({
    bytes: new Uint8Array([1, 2, 3]),
    type: 'image/png',
    sessionId: 'ses_1',
    url: 'https://example.com/',
    title: 'Grün',
    status: 404,
  });
  expect(asked[0]).toMatchObject({
    ...{ method: 'POST', url: '/api/screenshot' },
    body: '{"url":"https://example.com","full_page":true}',
  });
  expect(await client.pdf({ url: 'data:,' })).toMatchObject({ title: '', status: null });
});

it('a page is not opened again where the service refuses or says nothing', async () => {
  const hangUp = (response: { destroy(): unknown }): void => void response.destroy();
  await using service = await startScripted([refuse(503, 'UNAVAILABLE'), hangUp]);
  const { error } = await refusal(service.client.content({ url: 'https://example.com' }));
  expect(error).toBe('UNAVAILABLE');
  await expect(service.client.content({ url: 'https://a' })).rejects.toThrow('POST /api/content');
  expect(service.asked.length).toBe(2);
});
