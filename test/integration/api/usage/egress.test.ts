import { describe, expect, it } from 'vitest';
import type { LedgerState } from '#events/ledger.ts';
import { isRejection } from '#src/kernel/errors.ts';
import { createLedgerAudit } from '#src/kernel/billing/ledger-audit.ts';
import { handleSessionCommand } from '#src/commands/handle-session-command.ts';
import { newMetadata } from '#src/commands/metadata.ts';
import { evolveLedger } from '#src/kernel/domain/organization/ledger.ts';
import { readEvents } from '#src/kernel/event-store/read-events.ts';
import { egressTraffic } from '#test/support/examples.ts';
import { startApp } from '#test/support/service/api-in-memory.ts';
import { eventually } from '#test/support/service/service.ts';
import { useVirtualTime } from '#test/support/time/use-virtual-time.ts';

/** What browsers with egress rules sent and received, in an organization's usage. */

const { beforeAll, afterAll } = useVirtualTime();

const organizationId = 'acme';
/** What `egressTraffic` has of both its hosts. */
const ONCE = { bytes_sent: 4_100, bytes_received: 91_000, refused: 2 };
const TWICE = { bytes_sent: 8_200, bytes_received: 182_000, refused: 4 };
const NOTHING = { bytes_sent: 0, bytes_received: 0, refused: 0 };

let app: Awaited<ReturnType<typeof startApp>>;
/** One session ended before this moment, two after it. */
let between: string;

beforeAll(async () => {
  app = await startApp();
  await live({ egress: { deny: ['ads.example.com'] } }, 1);
  between = new Date(Date.now() + 5).toISOString();
  await eventually(() => Date.now() > Date.parse(between) + 5, 'it is later');
  await live({ egress: { deny: [] } }, 2);
  await live({}, 0);
});
afterAll(() => app?.[Symbol.asyncDispose]());

/** A session from its create to its settlement; its traffic is recorded so often. */
async function live(asked: object, records: number): Promise<void> {
  const before = (await app.ledger())?.sessionsEnded ?? 0;
  const { id } = (await app.request('POST', '/api/sessions', asked)).body;
  for (let count = 0; count < records; count += 1) {
    const command = { type: 'RecordEgress', traffic: egressTraffic, now: app.now() } as const;
    const limits = { concurrentSessions: 100 };
    const cause = newMetadata('test');
    const session = { organizationId, id };
    const outcome = await handleSessionCommand(app.context, session, command, cause, limits);
    expect(isRejection(outcome)).toBe(false);
  }
  await app.request('DELETE', `/api/sessions/${id}`);
  const isSettled = async () => (await app.ledger())?.sessionsEnded === before + 1;
  await eventually(isSettled, `${id} is settled`);
}

const usage = async (query = '') => (await app.request('GET', `/api/usage${query}`)).body;
const egressOf = ({ lines }: { lines: { egress: object | null }[] }) =>
  lines.map(({ egress }) => egress);

function fail(text: string): never {
  throw new Error(text);
}

describe('the usage of an organization', () => {
  it('has the traffic of sessions with egress rules, in all and by session', async () => {
    const all = await usage();
    expect(all.totals.egress).toEqual({ bytes_sent: 12_300, bytes_received: 273_000, refused: 6 });
    expect(egressOf(all)).toEqual([ONCE, TWICE, null]);
  });

  it('has it in one of two adjacent ranges, and the same later as then', async () => {
    const first = await usage(`?from=2026-01-01&to=${between}`);
    const second = await usage(`?from=${between}`);
    expect([first.totals.egress, egressOf(first)]).toEqual([ONCE, [ONCE]]);
    expect([second.totals.egress, egressOf(second)]).toEqual([TWICE, [TWICE, null]]);
    expect((await usage('?from=2025-01-01&to=2025-02-01')).totals.egress).toEqual(NOTHING);
    await live({ egress: { deny: [] } }, 1);
    expect(await usage(`?from=2026-01-01&to=${between}`)).toEqual(first);
    expect((await usage(`?from=${between}`)).totals.egress.refused).toBe(6);
  });

  it('is what a replay of the events gives', async () => {
    const { eventStore } = app.context;
    const audit = createLedgerAudit();
    let ledger: LedgerState | null = null;
    for await (const event of readEvents(eventStore, ['evt.>'], fail)) audit.take(event);
    const ref = { kind: 'ledger', organizationId } as const;
    for await (const event of eventStore.history<'ledger'>(ref))
      ledger = evolveLedger(ledger, event);
    const [report] = audit.report();
    expect(report?.differences).toEqual([]);
    expect(report?.bySessions).toEqual(ledger);
    const {
      bytes_sent: bytesSent,
      bytes_received: bytesReceived,
      refused,
    } = (await usage()).totals.egress;
    expect(ledger?.egress).toEqual({ bytesSent, bytesReceived, refused });
  });
});
