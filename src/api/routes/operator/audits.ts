import { reject } from '#src/errors.ts';
import { auditLedgers, type LedgerReport } from '#src/operator/audit-ledgers.ts';
import type { ApiDependencies } from '../../dependencies.ts';
import { sendRejection } from '../../http/error-response.ts';
import { response, type ApiServer } from '../../http/route.ts';
import { createBackgroundTask, type TaskStatus } from '../../operator/background-task.ts';
import { Audits } from '../../schemas/operator.ts';

const SHOWN_MAX = 1_000;
type Result = LedgerReport & { unreadable: number };

/** GET /api/operator/audits, POST to compare all ledgers with all sessions once more. */
export function operatorAudits(
  server: ApiServer,
  dependencies: Pick<ApiDependencies, 'context'>,
): void {
  const task = createBackgroundTask<Result>(() => dependencies.context.now());
  const ending = new AbortController();
  server.addHook('onClose', () => ending.abort(new Error('this process ends')));

  const about = {
    tags: ['Operator'],
    description: 'What `bss audit ledger` says. One audit at a time, in this process.',
  };
  server.route({
    method: 'GET',
    url: '/api/operator/audits',
    schema: {
      ...about,
      operationId: 'getAudits',
      summary: 'The last comparison of the ledgers with the sessions',
      response: { 200: response('What it found, or how far it is', Audits) },
    },
    config: { action: 'operator', refusals: [] },
    handler: (_, reply) => reply.send(present(task.last()?.status ?? null)),
  });
  server.route({
    method: 'POST',
    url: '/api/operator/audits',
    schema: {
      ...about,
      operationId: 'runAudit',
      summary: 'Compare all ledgers with all sessions',
      response: { 202: response('It has begun', Audits) },
    },
    config: { action: 'operator', refusals: ['UNAVAILABLE'] },
    handler(_, reply) {
      const { eventStore } = dependencies.context;
      const begun = task.start(
        'ledgers',
        async (report, signal) => {
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
        },
        ending.signal,
      );
      if (begun) return reply.code(202).send(present(task.last()?.status ?? null));
      const message = 'An audit is running; try again when it has ended.';
      const more = { message, retryAfterSeconds: 5 };
      return sendRejection(reply, reject('UNAVAILABLE', { part: 'event-log' }, more));
    },
  });
}

function present(status: TaskStatus<Result> | null) {
  if (status === null) return { ledgers: null };
  const { state, startedAt, endedAt, progress, failure, result } = status;
  const found = result && {
    ...result,
    organizations: result.organizations
      .toSorted((a, b) => Number(a.agrees) - Number(b.agrees))
      .slice(0, SHOWN_MAX),
  };
  return {
    ledgers: {
      state,
      started_at: startedAt,
      ended_at: endedAt,
      progress,
      failure,
      result: found,
    },
  };
}
