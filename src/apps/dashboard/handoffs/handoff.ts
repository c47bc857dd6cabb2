import { caller } from '../api/caller.ts';

/** A hand-off as the API tells it. */
export type Handoff = {
  id: string;
  session_id: string;
  status: 'requested' | 'taken' | 'completed' | 'expired';
  instructions: string;
  requested_at: string;
  requested_by: string;
  expires_at: string;
  taken_at: string | null;
  taken_by: string | null;
  completed_at: string | null;
  note: string | null;
  success: boolean | null;
};

/** Whether the user of this tab has it. */
export const isOwn = ({ taken_by: holder }: Handoff) =>
  holder !== null && holder === caller.value?.user_id;

export const handoffPath = ({ session_id: session, id }: Pick<Handoff, 'session_id' | 'id'>) =>
  `/api/sessions/${encodeURIComponent(session)}/handoffs/${encodeURIComponent(id)}`;
