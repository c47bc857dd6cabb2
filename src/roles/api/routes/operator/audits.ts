import { reject } from '#src/kernel/errors.ts';
import type { EventStore } from '#src/kernel/event-store/event-store.ts';
import type { ArchiveReport } from '#src/commands/operator/archive-report.ts';
import { auditLedgers, type LedgerReport } from '#src/commands/operator/audit-ledgers.ts';
import type { ApiDependencies } from '../../dependencies.ts';
import { sendRejection } from '../../http/error-response.ts';
import { response, type ApiServer } from '../../http/route.ts';
import { createBackgroundTask, type TaskStatus } from '../../operator/background-task.ts';
import { Audits } from '../../schemas/operator.ts';

/** Of each list. */
const SHOWN_MAX = 1_000;
type LedgerResult = LedgerReport & { unreadable: number };

/** GET /api/operator/audits, POST to audit all ledgers and the archive once more. */
export function operatorAudits(
  server: ApiServer,
  dependencies: Pick<ApiDependencies, 'context' | 'operator'>,
): void {
  const now = () => dependencies.context.now();
  const ledgers = createBackgroundTask<LedgerResult>(now);
  const archive = createBackgroundTask<ArchiveReport>(now);
  const ending = new AbortController();
  server.addHook('onClose', () => ending.abort(new Error('this process ends')));

  const about = {
    tags: ['Operator'],
    description:
      'What `bss audit ledger` and `bss archive verify` say: whether the ledgers agree with the ' +
      'sessions, and whether the archived part of the log is one signed chain without a change. ' +
      'One audit at a time, in this process.',
  };
  const found = () => ({
    ledgers: presentTask(ledgers.last()?.status, presentLedgers),
    archive: presentTask(archive.last()?.status, presentArchive),
  });
  server.route({
    method: 'GET',
    url: '/api/operator/audits',
    schema: {
      ...about,
      operationId: 'getAudits',
      summary: 'The last audit of the ledgers and of the archived log',
      response: { 200: response('What it found, or how far it is', Audits) },
    },
    config: { action: 'operator', refusals: [] },
    handler: (_, reply) => reply.send(found()),
  });
  server.route({
    method: 'POST',
    url: '/api/operator/audits',
    schema: {
      ...about,
      operationId: 'runAudit',
      summary: 'Audit all ledgers and the archived log',
      response: { 202: response('It has begun', Audits) },
    },
    config: { action: 'operator', refusals: ['UNAVAILABLE'] },
    handler(_, reply) {
      const { context, operator } = dependencies;
      const isRunning = [ledgers, archive].some((task) => task.last()?.status.state === 'running');
      if (isRunning) {
        const message = 'An audit is running; try again when it has ended.';
        const more = { message, retryAfterSeconds: 5 };
        return sendRejection(reply, reject('UNAVAILABLE', { part: 'event-log' }, more));
      }
      ledgers.start('ledgers', ledgerWork(context.eventStore), ending.signal);
      archive.start('archive', () => operator.verifyArchive(), ending.signal);
      return reply.code(202).send(found());
    },
  });
}

function ledgerWork(eventStore: EventStore) {
  return async (
    report: (done: number, of: number) => void,
    signal: AbortSignal,
  ): Promise<LedgerResult> => {
    let unreadable = 0;
    const audit = await auditLedgers(eventStore, {
      organizationId: null,
      warn: () => (unreadable += 1),
      onProgress(sequence, upTo) {
        signal.throwIfAborted();
        report(sequence, upTo);
      },
    });
    return { ...audit, unreadable };
  };
}

function presentLedgers({ organizations, ...result }: LedgerResult) {
  const differingFirst = organizations.toSorted((a, b) => Number(a.agrees) - Number(b.agrees));
  return { ...result, organizations: differingFirst.slice(0, SHOWN_MAX) };
}

function presentArchive({ findings, ...result }: ArchiveReport) {
  return { ...result, findings: findings.slice(0, SHOWN_MAX) };
}

function presentTask<Result, Shown>(
  status: TaskStatus<Result> | undefined,
  presentResult: (result: Result) => Shown,
) {
  if (status === undefined) return null;
  const { state, startedAt: started_at, endedAt: ended_at, progress, failure, result } = status;
  const shown = result === null ? null : presentResult(result);
  return { state, started_at, ended_at, progress, failure, result: shown };
}
