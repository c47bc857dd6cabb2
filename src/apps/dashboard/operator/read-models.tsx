import { useState } from 'preact/hooks';
import { post, sentenceOf } from '../api/api-client.ts';
import { Confirm } from '../shell/confirm.tsx';
import { Link } from '../shell/link.tsx';
import { Failure, Loading } from '../shell/states.tsx';
import { Table, type Column } from '../shell/table.tsx';
import { useResource } from '../api/use-resource.ts';
import type { ReadModel, ReadModels } from './answers.ts';
import { eventsAddress } from './events-address.ts';
import { TaskProgress } from './task-progress.tsx';
import { countOf, lagOf, numberOf, purposeOf } from './words.ts';

const EVERY_MS = 2_000;
const RUNNING_MS = 500;

const COLUMNS: readonly Column<ReadModel>[] = [
  {
    name: 'Read model',
    cell: ({ name, version }) => (
      <span class="stacked">
        <span>
          <code class="name">{name}</code>
          {version > 0 && <span class="muted"> version {version}</span>}
        </span>
        <span class="muted small">{purposeOf(name)}</span>
      </span>
    ),
  },
  {
    name: 'Status',
    cell: ({ status }) => (
      <span class={status === 'in use' ? 'good' : 'warned'}>
        {status.charAt(0).toUpperCase() + status.slice(1)}
      </span>
    ),
  },
  { name: 'Folded up to', cell: ({ checkpoint }) => <Position at={checkpoint} />, isNumber: true },
  { name: 'Last event', cell: ({ head }) => <Position at={head} />, isNumber: true },
  { name: 'Behind', cell: lagOf, isNumber: true },
  { name: 'Entries', cell: ({ views }) => numberOf(views), isNumber: true },
];

function Position({ at }: { at: number }) {
  if (at === 0) return <>0</>;
  return <Link to={eventsAddress({ at: `${at}` })}>{numberOf(at)}</Link>;
}

/** How far the read models are; each can be folded anew. */
export function ReadModelsPart() {
  const [asking, ask] = useState<string | null>(null);
  const [refusal, setRefusal] = useState<string | null>(null);
  const [everyMs, setEveryMs] = useState(EVERY_MS);
  const { data, failure, reload } = useResource<ReadModels>('/api/operator/read-models', {
    everyMs,
  });
  const isRunning = data?.rebuild?.state === 'running';
  const wantedMs = isRunning ? RUNNING_MS : EVERY_MS;
  if (wantedMs !== everyMs) setEveryMs(wantedMs);
  async function answer(name: string, isYes: boolean) {
    ask(null);
    if (!isYes) return;
    try {
      await post(`/api/operator/read-models/${encodeURIComponent(name)}/rebuild`, {});
      setRefusal(null);
    } catch (error) {
      setRefusal(sentenceOf(error));
    }
    reload();
  }
  const rebuild: Column<ReadModel> = {
    name: 'Rebuild',
    cell: ({ name, lag_events: lag }) =>
      lag !== null && (
        <div class="row-of-buttons">
          <button
            type="button"
            disabled={isRunning}
            aria-label={`Rebuild ${name}`}
            onClick={() => ask(name)}
          >
            Rebuild
          </button>
        </div>
      ),
  };
  return (
    <>
      <Failure what="The read models could not be read" failure={failure} retry={reload} />
      <Failure what="Not rebuilt" failure={refusal} />
      {data === null && failure === null && <Loading what="read models" />}
      {data?.rebuild && (
        <TaskProgress what={`The rebuild of ${data.rebuild.name}`} task={data.rebuild} />
      )}
      {data !== null && (
        <Table
          label="Read models"
          columns={[...COLUMNS, rebuild]}
          rows={data.read_models}
          keyOf={({ name, version }) => `${name} ${version}`}
        />
      )}
      {asking !== null && (
        <Confirm
          question={`Rebuild ${asking}?`}
          verb="Rebuild"
          onAnswer={(isYes) => void answer(asking, isYes)}
        >
          All {countOf(data?.read_models[0]?.head ?? 0, 'event')} of the store are folded again,
          beside the read model in use. It answers until the new one takes its place. It takes time
          of the processor; no data can be lost.
        </Confirm>
      )}
    </>
  );
}
