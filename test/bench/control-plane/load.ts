/**
 * The client of the control plane's figures, as a separate process: node load.ts <url> <seconds>
 * requests the address over and over, and prints what came back as JSON.
 */
import autocannon from 'autocannon';
import { DEV_KEY } from '#test/support/service/service.ts';

/** `perSecond`: answered requests; latency in milliseconds. */
export type Load = { requests: number; perSecond: number; mean: number; p99: number };

const CONNECTIONS = 50;

const [url = '', seconds = ''] = process.argv.slice(2);
const { requests, latency, errors, non2xx } = await autocannon({
  url,
  connections: CONNECTIONS,
  duration: Number(seconds),
  headers: { authorization: `Bearer ${DEV_KEY}` },
});
if (errors + non2xx > 0) throw new Error(`${url}: ${errors} errors, ${non2xx} refusals`);
const load: Load = {
  requests: requests.total,
  perSecond: requests.average,
  mean: latency.average,
  p99: latency.p99,
};
process.stdout.write(JSON.stringify(load));
