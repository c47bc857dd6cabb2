import { useState } from 'preact/hooks';
import { change, sentenceOf } from '../api/api-client.ts';
import { useResource } from '../api/use-resource.ts';
import { moment } from '../shell/moment.ts';
import { Empty, Failure, Loading } from '../shell/states.tsx';
import { Table, type Column } from '../shell/table.tsx';
import { Time } from '../shell/time.tsx';
import { shownUrl, stateOf, type Webhook, type WebhookList } from './webhook.ts';

const AGAIN_MS = 5_000;

/** Where the organization's events are sent, and how that goes. */
export function WebhooksPage() {
  const { data, failure, reload } = useResource<WebhookList>('/api/webhooks', {
    everyMs: AGAIN_MS,
  });
  const [refusal, setRefusal] = useState<string | null>(null);
  async function enable(id: string) {
    try {
      await change('PATCH', `/api/webhooks/${encodeURIComponent(id)}`, { disabled: false });
      setRefusal(null);
    } catch (error) {
      setRefusal(sentenceOf(error));
    }
    reload();
  }
  return (
    <div class="page">
      <div class="title">
        <h1>Webhooks</h1>
        <p class="muted">
          The organization’s events are sent to these URLs, signed, as they happen.
        </p>
      </div>
      {moment.value !== null && (
        <p class="notice warn">This page shows the webhooks of now, not of the moment chosen.</p>
      )}
      <Failure what="The webhook was not enabled" failure={refusal} />
      <Failure what="The webhooks could not be read" failure={failure} retry={reload} />
      {data === null && failure === null && <Loading what="the webhooks" />}
      {data !== null && data.webhooks.length === 0 && (
        <Empty title="There is no webhook yet">
          <p class="muted">
            <code>POST /api/webhooks</code> creates one, and answers the secret that its receiver
            verifies events with.
          </p>
        </Empty>
      )}
      {data !== null && data.webhooks.length > 0 && (
        <Table
          label="Webhooks"
          columns={columns((id) => void enable(id))}
          rows={data.webhooks}
          keyOf={({ id }) => id}
        />
      )}
    </div>
  );
}

function columns(enable: (id: string) => void): readonly Column<Webhook>[] {
  return [
    { name: 'URL', cell: ({ url }) => shownUrl(url) },
    { name: 'Events', cell: ({ types }) => (types.length === 0 ? 'all' : types.join(', ')) },
    { name: 'State', cell: (webhook) => <State webhook={webhook} /> },
    { name: 'Last attempt', cell: (webhook) => <Last webhook={webhook} /> },
    { name: 'Waiting', cell: ({ waiting }) => waiting, isNumber: true },
    { name: 'Id', cell: ({ id }) => <code>{id}</code> },
    {
      name: 'Action',
      cell: ({ id, disabled }) =>
        disabled !== null && (
          <button type="button" aria-label={`Enable again ${id}`} onClick={() => enable(id)}>
            Enable again
          </button>
        ),
    },
  ];
}

function State({ webhook }: { webhook: Webhook }) {
  const since = webhook.disabled?.at ?? webhook.failing_since;
  return (
    <span>
      {stateOf(webhook)}
      {since !== null && (
        <>
          {' since '}
          <Time at={since} />
        </>
      )}
    </span>
  );
}

function Last({ webhook: { last_delivery: last } }: { webhook: Webhook }) {
  if (last === null) return <span class="muted">none</span>;
  return (
    <span>
      {last.outcome}
      {last.status !== null && ` (${last.status})`} <Time at={last.at} />
    </span>
  );
}
