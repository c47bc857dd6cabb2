import { useEffect, useRef, useState } from 'preact/hooks';
import { change, read, sentenceOf } from '../api/api-client.ts';
import { fieldOf } from '../shell/form-field.ts';
import { Failure, Loading } from '../shell/states.tsx';
import { Table, type Column } from '../shell/table.tsx';
import { useResource } from '../api/use-resource.ts';

type Allowed = { allowed_origins: string[] };

const AGAIN_MS = 10_000;

/** The origins of pages that may embed the page of a share. */
export function Origins() {
  const { data, failure, reload } = useResource<Allowed>('/api/organization', {
    everyMs: AGAIN_MS,
  });
  const [refusal, setRefusal] = useState<string | null>(null);
  const section = useRef<HTMLElement>(null);
  useEffect(() => {
    if (location.hash === '#origins') section.current?.scrollIntoView();
  }, []);
  const saved = useRef<Promise<unknown>>(Promise.resolve());
  /** One change after the other: each is made to the list that the one before it has left. */
  function save(changed: (origins: string[]) => string[]): Promise<boolean> {
    const saving = saved.current.then(() => saveNow(changed));
    saved.current = saving;
    return saving;
  }
  /** Reads the list first: another admin may have changed it since it was shown. */
  async function saveNow(changed: (origins: string[]) => string[]): Promise<boolean> {
    try {
      const { allowed_origins: origins } = await read<Allowed>('/api/organization');
      await change<Allowed>('PUT', '/api/organization/origins', {
        allowed_origins: changed(origins),
      });
      setRefusal(null);
      reload();
      return true;
    } catch (error) {
      setRefusal(sentenceOf(error));
      return false;
    }
  }
  async function add(event: SubmitEvent) {
    event.preventDefault();
    const form = event.currentTarget as HTMLFormElement;
    const origin = originOf(fieldOf(form, 'origin'));
    if (await save((origins) => [...origins, origin])) form.reset();
  }
  const removeOrigin = (origin: string) =>
    void save((origins) => origins.filter((other) => other !== origin));
  return (
    <section id="origins" class="origins" aria-labelledby="origins-title" ref={section}>
      <h2 id="origins-title">Pages that may embed a shared screen</h2>
      <p class="muted">
        The address of a share opens in a tab of its own. To show it in a frame of your own site,
        add the site’s origin. It counts for pages that are loaded two seconds later.
      </p>
      <form class="card issue" onSubmit={(event) => void add(event)}>
        <label>
          Origin
          <input name="origin" required maxLength={256} placeholder="https://app.example.com" />
        </label>
        <button type="submit">Add</button>
        <Failure what="Not changed" failure={refusal} />
      </form>
      <Failure what="The origins could not be read" failure={failure} retry={reload} />
      {data === null && failure === null && <Loading what="the origins" />}
      {data?.allowed_origins.length === 0 && (
        <p class="muted">No page may embed a shared screen now.</p>
      )}
      {data !== null && data.allowed_origins.length > 0 && (
        <Table
          label="Allowed origins"
          columns={columns(removeOrigin)}
          rows={data.allowed_origins}
          keyOf={(origin) => origin}
        />
      )}
    </section>
  );
}

/** Of the address of a page its origin; other text as it is, for the API to refuse. */
function originOf(text: string): string {
  const url = URL.parse(text);
  return url === null || url.origin === 'null' ? text : url.origin;
}

function columns(removeOrigin: (origin: string) => void): readonly Column<string>[] {
  return [
    { name: 'Origin', cell: (origin) => <code>{origin}</code> },
    {
      name: 'Action',
      cell: (origin) => (
        <button
          type="button"
          class="danger"
          aria-label={`Remove ${origin}`}
          onClick={() => removeOrigin(origin)}
        >
          Remove
        </button>
      ),
    },
  ];
}
