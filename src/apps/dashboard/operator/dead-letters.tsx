import { useState } from 'preact/hooks';
import { post, sentenceOf } from '../api/api-client.ts';
import { CopyBlock } from '../shell/copy-block.tsx';
import { query, setParameter } from '../shell/router.ts';
import { Empty, Failure, Loading } from '../shell/states.tsx';
import { Table, type Column } from '../shell/table.tsx';
import { Time } from '../shell/time.tsx';
import { useResource } from '../api/use-resource.ts';
import type { DeadLetter, DeadLetters, DecidedDeadLetter } from './answers.ts';
import { SkipDialog, type SkipAnswer } from './skip-dialog.tsx';
import { countOf, outcomeOf, placeOf } from './words.ts';

const PAGE = 100;
const EVERY_MS = 5_000;

const COLUMNS: readonly Column<DeadLetter>[] = [
  {
    name: 'Item',
    cell: (letter) => (
      <span class="stacked">
        <code class="name">{placeOf(letter)}</code>
        <code class="muted">{letter.subject}</code>
      </span>
    ),
  },
  {
    name: 'Consumer',
    cell: ({ kind, failed_by: by }) => (
      <span class="stacked">
        <code>{by}</code>
        <span class="muted small">{kind === 'work_queue' ? 'a work queue' : 'a read model'}</span>
      </span>
    ),
  },
  { name: 'Reason', cell: ({ reason }) => <Reason text={reason} /> },
  { name: 'Attempts', cell: ({ attempts }) => attempts, isNumber: true },
  { name: 'First', cell: ({ at }) => <Time at={at} /> },
];

type Outcome = { text: string; isGood: boolean };

/** Dead letters, each with the two decisions on it; what came of the last one stays in view. */
export function DeadLettersPart() {
  const after = query.value.get('after') ?? '0';
  const path = `/api/operator/dead-letters?limit=${PAGE}&after=${encodeURIComponent(after)}`;
  const { data, failure, reload } = useResource<DeadLetters>(path, { everyMs: EVERY_MS });
  const [busy, setBusy] = useState<string | null>(null);
  const [skipping, skip] = useState<DeadLetter | null>(null);
  const [outcome, setOutcome] = useState<Outcome | null>(null);
  async function decide(letter: DeadLetter, decision: 'retry' | 'skip', body: object) {
    setBusy(letter.id);
    try {
      const address = `/api/operator/dead-letters/${encodeURIComponent(letter.id)}/${decision}`;
      const decided = await post<DecidedDeadLetter>(address, body);
      setOutcome({ text: outcomeOf(decided), isGood: decided.outcome !== 'fails' });
    } catch (error) {
      setOutcome({ text: sentenceOf(error), isGood: false });
    }
    setBusy(null);
    reload();
  }
  function onAnswer(answer: SkipAnswer | null) {
    if (answer !== null && skipping !== null) void decide(skipping, 'skip', answer);
    skip(null);
  }
  const decisions: Column<DeadLetter> = {
    name: 'Decide',
    cell: (letter) => (
      <Decisions
        letter={letter}
        isBusy={busy !== null}
        retry={() => void decide(letter, 'retry', {})}
        skip={() => skip(letter)}
      />
    ),
  };
  return (
    <>
      <Failure what="The dead letters could not be read" failure={failure} retry={reload} />
      {data === null && failure === null && <Loading what="dead letters" />}
      <p class={outcomeClass(outcome)} role="status">
        {outcome?.text}
      </p>
      {data?.total === 0 && <NoneLeft />}
      {data !== null && data.total > 0 && (
        <Listed data={data} after={after} columns={[...COLUMNS, decisions]} />
      )}
      {skipping !== null && <SkipDialog letter={skipping} onAnswer={onAnswer} />}
    </>
  );
}

function outcomeClass(outcome: Outcome | null): string {
  if (outcome === null) return 'hidden';
  return outcome.isGood ? 'notice done' : 'notice bad';
}

type ListedProps = { data: DeadLetters; after: string; columns: readonly Column<DeadLetter>[] };

function Listed({ data: { dead_letters: letters, total, next }, after, columns }: ListedProps) {
  const first = letters[0];
  return (
    <>
      <p class="muted">
        {countOf(total, 'dead letter')}
        {letters.length < total && `; ${letters.length} are shown`}
      </p>
      <Table label="Dead letters" columns={columns} rows={letters} keyOf={({ id }) => id} />
      {(after !== '0' || next !== null) && (
        <div class="row-of-buttons">
          <button
            type="button"
            disabled={after === '0'}
            onClick={() => setParameter('after', null)}
          >
            First page
          </button>
          <button
            type="button"
            disabled={next === null}
            onClick={() => setParameter('after', next)}
          >
            Next page
          </button>
        </div>
      )}
      {first !== undefined && (
        <CopyBlock
          title="See what an item contains, on the server"
          text={`./bss dead-letters show ${first.sequence}`}
        />
      )}
    </>
  );
}

type DecisionsProps = {
  letter: DeadLetter;
  isBusy: boolean;
  retry: () => void;
  skip: () => void;
};

function Decisions({ letter, isBusy, retry, skip }: DecisionsProps) {
  const place = placeOf(letter);
  return (
    <div class="row-of-buttons">
      <button type="button" disabled={isBusy} aria-label={`Retry ${place}`} onClick={retry}>
        Retry
      </button>
      <button
        type="button"
        class="danger"
        disabled={isBusy}
        aria-label={`Skip ${place}`}
        onClick={skip}
      >
        Skip
      </button>
    </div>
  );
}

const SHORT = 160;

/** The reason of a schema mismatch runs to pages. */
function Reason({ text }: { text: string }) {
  if (text.length <= SHORT) return <span class="reason">{text}</span>;
  return (
    <details class="reason">
      <summary>{text.slice(0, SHORT)}…</summary>
      <pre tabIndex={0}>{text}</pre>
    </details>
  );
}

function NoneLeft() {
  return (
    <Empty title="No dead letters">
      <p class="muted">
        Everything in the log has been handled. If a read model or a work queue gives an item up, it
        is kept here with the reason. You then have it handled again (retry), after a mended release
        for example, or leave it out for good (skip).
      </p>
      <CopyBlock title="The same in a terminal" text="./bss dead-letters list" />
    </Empty>
  );
}
