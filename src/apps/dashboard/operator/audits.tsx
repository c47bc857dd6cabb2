import { useState } from 'preact/hooks';
import { post, sentenceOf } from '../api/api-client.ts';
import { CopyBlock } from '../shell/copy-block.tsx';
import { Empty, Failure, Loading } from '../shell/states.tsx';
import { Table, type Column } from '../shell/table.tsx';
import { useResource } from '../api/use-resource.ts';
import type { ArchiveResult, AuditedLedger, Audits, LedgerResult } from './answers.ts';
import { TaskProgress } from './task-progress.tsx';
import { archiveVerdictOf, numberOf, verdictOf } from './words.ts';

const EVERY_MS = 5_000;
const RUNNING_MS = 500;

const COLUMNS: readonly Column<AuditedLedger>[] = [
  { name: 'Organization', cell: (one) => <code class="name">{one.organization_id}</code> },
  {
    name: 'Verdict',
    cell: ({ agrees, differences }) =>
      agrees ? (
        <span class="good">✓ Agrees</span>
      ) : (
        <div class="warned">
          ✗ Differs
          <ul>
            {differences.map((text) => (
              <li key={text}>{text}</li>
            ))}
          </ul>
        </div>
      ),
  },
  { name: 'Sessions', cell: (one) => numberOf(one.sessions), isNumber: true },
  { name: 'Open', cell: ({ open }) => numberOf(open), isNumber: true },
  { name: 'Granted', cell: (one) => numberOf(one.credits_granted), isNumber: true },
  { name: 'Used', cell: (one) => numberOf(one.credits_used), isNumber: true },
  { name: 'Reserved', cell: (one) => numberOf(one.credits_reserved), isNumber: true },
  { name: 'Available', cell: (one) => numberOf(one.credits_available), isNumber: true },
];

/** What the last audit of the answering process found, and the button that runs one. */
export function AuditsPart() {
  const [refusal, setRefusal] = useState<string | null>(null);
  const [everyMs, setEveryMs] = useState(EVERY_MS);
  const { data, failure, reload } = useResource<Audits>('/api/operator/audits', { everyMs });
  const isRunning = [data?.ledgers, data?.archive].some((task) => task?.state === 'running');
  const wantedMs = isRunning ? RUNNING_MS : EVERY_MS;
  if (wantedMs !== everyMs) setEveryMs(wantedMs);
  async function run() {
    try {
      await post('/api/operator/audits', {});
      setRefusal(null);
    } catch (error) {
      setRefusal(sentenceOf(error));
    }
    reload();
  }
  return (
    <>
      <Failure what="The audits could not be read" failure={failure} retry={reload} />
      <Failure what="No audit was begun" failure={refusal} />
      {data === null && failure === null && <Loading what="audits" />}
      {data !== null && (
        <div class="row-of-buttons">
          <button type="button" class="primary" disabled={isRunning} onClick={() => void run()}>
            {isRunning ? 'An audit is running…' : 'Run an audit'}
          </button>
        </div>
      )}
      {data?.ledgers === null && <NoneYet />}
      {data?.ledgers && (
        <section class="part">
          <h3>Ledgers</h3>
          <TaskProgress what="The audit of the ledgers" task={data.ledgers} />
          {data.ledgers.result !== null && <Ledgers result={data.ledgers.result} />}
        </section>
      )}
      {data?.archive && (
        <section class="part">
          <h3>Archived log</h3>
          <TaskProgress what="The audit of the archive" task={data.archive} />
          {data.archive.result !== null && <Archive result={data.archive.result} />}
        </section>
      )}
    </>
  );
}

function Ledgers({ result }: { result: LedgerResult }) {
  return (
    <>
      <Verdict isGood={result.agrees && result.unreadable === 0} text={verdictOf(result)} />
      <Table
        label="Ledgers"
        columns={COLUMNS}
        rows={result.organizations}
        keyOf={(one) => one.organization_id}
      />
    </>
  );
}

function Archive({ result }: { result: ArchiveResult }) {
  return (
    <>
      <Verdict isGood={result.agrees} text={archiveVerdictOf(result)} />
      {result.findings.length > 0 && (
        <ul>
          {result.findings.map(({ segment, line, problem }) => (
            <li key={`${segment} ${line} ${problem}`}>
              Segment {segment}
              {line !== null && `, line ${line}`}: {problem}
            </li>
          ))}
        </ul>
      )}
      {result.segments > 0 && (
        <p class="muted">
          Signed by the key <code class="name">{result.signer}</code>
        </p>
      )}
    </>
  );
}

function Verdict({ isGood, text }: { isGood: boolean; text: string }) {
  return (
    <p class={isGood ? 'notice done' : 'notice bad'} role="status">
      {isGood ? '✓' : '✗'} {text}
    </p>
  );
}

function NoneYet() {
  return (
    <Empty title="No audit has run yet">
      <p class="muted">
        An audit reads the whole log once. It compares the ledger of each organization with its
        sessions: what was granted, reserved, used and given back. Then it verifies the archived
        part of the log: hashes, chain and signatures. It changes nothing. A restart of the service
        forgets what it found.
      </p>
      <CopyBlock title="The same in a terminal" text={'./bss audit ledger\n./bss archive verify'} />
    </Empty>
  );
}
