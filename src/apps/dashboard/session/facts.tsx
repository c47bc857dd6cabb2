import type { ComponentChildren } from 'preact';
import type { SessionState } from '#events/session.ts';
import { formatSpan, Time } from '../shell/time.tsx';
import type { Details } from './use-session.ts';

/** What is shown of a session, now or at a moment. */
export type Facts = {
  id: string;
  name: string;
  description: string;
  status: SessionState['status'];
  userId: string;
  labels: Readonly<Record<string, string>>;
  createdAt: string;
  startedAt: string | null;
  expiresAt: string;
  endedAt: string | null;
  endedReason: string | null;
  serverId: string | null;
  browser: Pick<
    SessionState['browser'],
    'geolocation' | 'userAgent' | 'permissions' | 'extensions'
  >;
  /** The profile that its browser began with; null: none. */
  profile: { id: string; version: number | null; save: boolean; saved: number | null } | null;
};

export function factsOfDetails(details: Details): Facts {
  return {
    id: details.id,
    name: details.session_name,
    description: details.description,
    status: details.status,
    userId: details.user_id,
    labels: details.labels,
    createdAt: details.created_at,
    startedAt: details.started_at,
    expiresAt: details.expires_at,
    endedAt: details.ended_at,
    endedReason: details.ended_reason,
    serverId: details.autoscaler_server_id,
    browser: {
      ...(details.geolocation === null ? {} : { geolocation: details.geolocation }),
      ...(details.user_agent === null ? {} : { userAgent: details.user_agent }),
      ...(details.permissions.length === 0 ? {} : { permissions: details.permissions }),
      ...(details.extensions.length === 0 ? {} : { extensions: details.extensions }),
    },
    profile: details.profile && { ...details.profile, saved: details.profile.saved_version },
  };
}

export function factsOfState(state: SessionState): Facts {
  const { profile, workload } = state;
  return {
    ...state,
    serverId: workload?.serverId ?? null,
    profile: profile === undefined ? null : { ...profile, saved: profile.saved ?? null },
  };
}

export function FactList({ facts }: { facts: Facts }) {
  const rows: [name: string, value: ComponentChildren][] = [
    ['Id', <code key="id">{facts.id}</code>],
    ['User', facts.userId],
    ['Labels', <Labels key="labels" labels={facts.labels} />],
    ['Created', <Time key="created" at={facts.createdAt} />],
    ['Got a browser', <Started key="started" facts={facts} />],
    [
      facts.endedAt === null ? 'Expires' : 'Ended',
      <Time key="end" at={facts.endedAt ?? facts.expiresAt} />,
    ],
    ...(facts.endedReason === null ? [] : [['Reason', facts.endedReason] as [string, string]]),
    ...(facts.profile === null
      ? []
      : [['Profile', profileLine(facts.profile, facts.endedAt !== null)] as [string, string]]),
    ...(facts.serverId === null ? [] : [['Server', facts.serverId] as [string, string]]),
    ...emulated(facts.browser),
  ];
  return (
    <dl class="facts card">
      {rows.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}

/** What the browser pretends to be, where it does. */
function emulated(browser: Facts['browser']): [name: string, value: string][] {
  const { geolocation, userAgent, permissions, extensions } = browser;
  const rows: [string, string | undefined][] = [
    ['User agent', userAgent],
    ['Location', geolocation && `${geolocation.latitude}, ${geolocation.longitude}`],
    ['Permissions', permissions?.join(', ')],
    ['Extensions', extensions?.join(', ')],
  ];
  return rows.filter((row): row is [string, string] => row[1] !== undefined);
}

/** What it began with, and what it leaves or has left. */
function profileLine(
  { id, version, save, saved }: NonNullable<Facts['profile']>,
  hasEnded: boolean,
): string {
  const begun = version === null || version === 0 ? 'empty' : `version ${version}`;
  const unsaved = hasEnded ? 'not saved' : 'to be saved';
  const left = saved === null ? unsaved : `saved as version ${saved}`;
  return `${id}, ${begun}${save ? `, ${left}` : ''}`;
}

function Started({ facts: { createdAt, startedAt } }: { facts: Facts }) {
  if (startedAt === null) return <>not yet</>;
  return <>{formatSpan(Date.parse(startedAt) - Date.parse(createdAt))} after its request</>;
}

function Labels({ labels }: { labels: Facts['labels'] }) {
  const all = Object.entries(labels);
  if (all.length === 0) return <>none</>;
  return <>{all.map(([name, value]) => `${name}=${value}`).join(', ')}</>;
}
