import { useEffect, useRef, useState } from 'preact/hooks';
import type { CloudEvent } from '#events/cloud-event.ts';
import type { Geolocation } from '#events/session.ts';
import type { Handoff } from '../handoffs/handoff.ts';
import { listen, sessionOf } from '../live/organization-events.ts';
import { useResource, type Resource } from '../api/use-resource.ts';
import type { SessionDetails } from '../sessions/rows.ts';
import { followHistory, NOTHING_READ, type History, type HistoryReader } from './history-reader.ts';
import type { Egress } from './egress.tsx';
import type { Why } from './history.ts';

/** GET /api/sessions/{id}. */
export type Details = SessionDetails & {
  description: string;
  started_at: string | null;
  ended_at: string | null;
  vnc_password: string | null;
  viewer_url: string | null;
  cdp_url: string | null;
  headless: boolean;
  record: boolean;
  geolocation: Geolocation | null;
  user_agent: string | null;
  permissions: string[];
  /** Their ids. */
  extensions: string[];
  profile: {
    id: string;
    version: number | null;
    save: boolean;
    saved_version: number | null;
  } | null;
  /** The last one. */
  handoff: Handoff | null;
  /** Null: it has no rules. */
  egress: Egress | null;
  autoscaler_server_id: string | null;
  credits_reserved: number;
  credits_used: number | null;
  queue_position?: number;
  estimated_wait_seconds?: number | null;
};

/** After a session's event come those of its browser and of its credits. */
const AFTERMATH_MS = 1500;

type Followed = {
  details: Resource<Details>;
  why: Resource<Why>;
  history: History;
  readMore: () => void;
};

/** All that a session's page shows, read again at what happens to it. */
export function useSession(id: string): Followed {
  const path = `/api/sessions/${encodeURIComponent(id)}`;
  const [events, setEvents] = useState(0);
  const [settled, setSettled] = useState(0);
  const [history, setHistory] = useState(NOTHING_READ);
  const reader = useRef<HistoryReader | null>(null);
  const details = useResource<Details>(path, { again: events });
  const why = useResource<Why>(`${path}/why`, { again: settled });
  useEffect(() => {
    reader.current = followHistory(id, setHistory);
    return () => reader.current?.stop();
  }, [id]);
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    function happened() {
      setEvents((before) => before + 1);
      clearTimeout(timer);
      timer = setTimeout(() => setSettled((before) => before + 1), AFTERMATH_MS);
    }
    let isFirst = true;
    const stop = listen({
      onOpen: () => {
        if (!isFirst) happened();
        isFirst = false;
      },
      onEvent: (event) => {
        if (isAbout(event, id)) happened();
      },
    });
    return () => {
      clearTimeout(timer);
      stop();
    };
  }, [id]);
  return { details, why, history, readMore: () => reader.current?.readMore() };
}

/** The session's own events, and those of the ledger for it. */
function isAbout(event: CloudEvent, id: string): boolean {
  if (sessionOf(event) === id) return true;
  const { sessionId } = (event.data ?? {}) as { sessionId?: unknown };
  return sessionId === id;
}
