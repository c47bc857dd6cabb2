import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { connect } from 'puppeteer-core';
import { DEV_KEY, startService, type RunningService } from '#test/support/service/service.ts';
import { createFigures, interleave } from './harness/interleave.ts';
import type { Probe } from './harness/probe.ts';
import { atMost, row, timed, type Verdict } from './samples.ts';
import { createSession, stopSession, untilIdle } from './sessions.ts';

type Figure = 'one call' | 'by hand';
const PAGE = '<!doctype html><title>Bench</title><body style="background:#abc"><h1>Hello</h1>';

/**
 * A picture of a page in one call, beside what a client does for it with Puppeteer: create,
 * connect, goto, screenshot, stop. In turns on one service whose browsers wait.
 */
export async function benchOneCall(
  print: (line?: string) => void,
  { rounds, tiers }: { rounds: number; tiers: string },
  probe: Probe,
): Promise<Verdict[]> {
  const site = createServer((_, response) =>
    response.writeHead(200, { 'content-type': 'text/html' }).end(PAGE),
  );
  await new Promise<void>((resolve) => site.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(site.address() as AddressInfo).port}/`;
  try {
    await using service = await startService({ BROWSERS: 'process', TIERS: tiers });
    const figures = createFigures<Figure>();
    const ways = { 'one call': oneCall, 'by hand': byHand };
    const step = (figure: Figure) => async () => {
      await untilIdle(service, 1);
      const { ms } = await timed(() => ways[figure](service, url));
      figures.add(figure, ms);
    };
    for (const way of Object.values(ways)) {
      await untilIdle(service, 1);
      await way(service, url);
    }
    await interleave([step('one call'), step('by hand')], rounds, () => probe.take());
    print('an idle browser waits, milliseconds');
    print(row('POST /api/screenshot → its last byte', figures.of('one call')));
    print(row('create, connect, goto, screenshot, stop', figures.of('by hand')));
    const ratio = figures.of('one call').p50 / figures.of('by hand').p50;
    return [atMost('a picture in one call ÷ by hand with Puppeteer', ratio, 1)];
  } finally {
    site.closeAllConnections();
    site.close();
  }
}

async function oneCall({ apiUrl }: RunningService, url: string): Promise<void> {
  const answer = await fetch(`${apiUrl}/api/screenshot`, {
    method: 'POST',
    headers: { authorization: `Bearer ${DEV_KEY}`, 'content-type': 'application/json' },
    body: JSON.stringify({ url }),
  });
  const bytes = await answer.arrayBuffer();
  if (answer.status !== 200) throw new Error(Buffer.from(bytes).toString());
}

async function byHand(service: RunningService, url: string): Promise<void> {
  const { id, cdpUrl } = await createSession(service);
  const defaultViewport = { width: 1280, height: 800 };
  const browser = await connect({ browserWSEndpoint: cdpUrl, defaultViewport });
  const [page] = await browser.pages();
  await page?.goto(url);
  await page?.screenshot();
  await browser.disconnect();
  await stopSession(service, id);
}
