import { useRef, useState } from 'preact/hooks';
import { may } from '../../api/caller.ts';
import { useResource } from '../../api/use-resource.ts';
import { Confirm } from '../../shell/confirm.tsx';
import { Failure } from '../../shell/states.tsx';
import { Table, type Column } from '../../shell/table.tsx';
import { Time } from '../../shell/time.tsx';
import { useFileEvents, useWork, type FileWork } from './file-work.ts';
import type { HistoryEvent } from '../history.ts';
import { formatSize, refusedOf, type Refused, type SessionFile } from './session-files.ts';
import type { Details } from '../use-session.ts';
import './files.css';

/** Of more refusals the timeline tells. */
const REFUSED_MAX = 5;

type FilesProps = { session: Details; events: readonly HistoryEvent[] };

/** The session's files, also after its end: what its browser downloaded and what it was given. */
export function Files({ session, events }: FilesProps) {
  const path = `/api/sessions/${encodeURIComponent(session.id)}/files`;
  const changes = useFileEvents(session.id);
  const { data, failure, reload } = useResource<{ files: SessionFile[] }>(path, {
    again: changes,
  });
  const work = useWork(reload);
  const files = data?.files ?? [];
  const refused = refusedOf(events);
  const isActive = session.status === 'active';
  if (!isActive && files.length === 0 && refused.length === 0) return null;
  const canChange = isActive && may('member');
  return (
    <section class="files" aria-labelledby="files">
      <div class="title">
        <h2 id="files">Files</h2>
        {files.length > 1 && (
          <button type="button" onClick={() => work.save(`${session.id}.zip`, `${path}.zip`)}>
            All as a zip
          </button>
        )}
      </div>
      {canChange && <Drop upload={(chosen) => work.upload(path, chosen)} />}
      <p role="status" class={work.told === null ? '' : 'notice'}>
        {work.told}
      </p>
      <Failure what="Refused" failure={work.refusal} />
      <Failure what="The files could not be read" failure={failure} retry={reload} />
      {data !== null && files.length === 0 && <p class="muted">There is no file now.</p>}
      {files.length > 0 && (
        <FileTable path={path} files={files} work={work} canChange={canChange} />
      )}
      <RefusedFiles refused={refused} />
    </section>
  );
}

type TableProps = {
  path: string;
  files: readonly SessionFile[];
  work: FileWork;
  canChange: boolean;
};

function FileTable({ path, files, work, canChange }: TableProps) {
  const [asking, ask] = useState<SessionFile | null>(null);
  const pathOf = (name: string) => `${path}/${encodeURIComponent(name)}`;
  return (
    <>
      <Table
        label="Files"
        columns={columns((name) => work.save(name, pathOf(name)), canChange ? ask : null)}
        rows={files}
        keyOf={({ name }) => name}
      />
      {asking !== null && (
        <Confirm
          question={`Remove ${asking.name}?`}
          verb="Remove"
          onAnswer={(isYes) => {
            ask(null);
            if (isYes) work.remove(asking.name, pathOf(asking.name));
          }}
        >
          The browser cannot open it any more. This cannot be undone.
        </Confirm>
      )}
    </>
  );
}

/** A place to drop files on, with a button that chooses some. */
function Drop({ upload }: { upload: (files: readonly File[]) => void }) {
  const [isOver, setOver] = useState(false);
  const input = useRef<HTMLInputElement>(null);
  return (
    <div
      class={isOver ? 'drop over' : 'drop'}
      onDragOver={(event) => {
        event.preventDefault();
        setOver(true);
      }}
      onDragLeave={() => setOver(false)}
      onDrop={(event) => {
        event.preventDefault();
        setOver(false);
        const files = [...(event.dataTransfer?.files ?? [])];
        if (files.length > 0) upload(files);
      }}
    >
      <button type="button" onClick={() => input.current?.click()}>
        Upload files
      </button>
      <span class="muted">or drop them here. What the browser downloads comes by itself.</span>
      <input
        ref={input}
        type="file"
        aria-label="Files to upload"
        multiple
        hidden
        onChange={({ currentTarget }) => {
          const files = [...(currentTarget.files ?? [])];
          currentTarget.value = '';
          if (files.length > 0) upload(files);
        }}
      />
    </div>
  );
}

function RefusedFiles({ refused }: { refused: readonly Refused[] }) {
  if (refused.length === 0) return null;
  return (
    <div class="refused">
      <h3>Refused</h3>
      <ul>
        {refused.slice(0, REFUSED_MAX).map(({ sequence, time, name, why }) => (
          <li key={sequence}>
            <strong>{name}</strong>: {why}{' '}
            <span class="muted">
              <Time at={time} />
            </span>
          </li>
        ))}
      </ul>
      {refused.length > REFUSED_MAX && (
        <p class="muted">and {refused.length - REFUSED_MAX} more, in the timeline</p>
      )}
    </div>
  );
}

function columns(
  save: (name: string) => void,
  ask: ((file: SessionFile) => void) | null,
): readonly Column<SessionFile>[] {
  return [
    { name: 'Name', cell: ({ name }) => name },
    { name: 'Size', isNumber: true, cell: ({ bytes }) => formatSize(bytes) },
    { name: 'From', cell: ({ origin }) => (origin === 'download' ? 'the browser' : 'an upload') },
    { name: 'Since', cell: ({ created_at: at }) => <Time at={at} /> },
    {
      name: 'Action',
      cell: (file) => (
        <div class="actions">
          <button
            type="button"
            aria-label={`Download ${file.name}`}
            onClick={() => save(file.name)}
          >
            Download
          </button>
          {ask !== null && (
            <button
              type="button"
              class="danger"
              aria-label={`Remove ${file.name}`}
              onClick={() => ask(file)}
            >
              Remove
            </button>
          )}
        </div>
      ),
    },
  ];
}
