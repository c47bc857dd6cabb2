/** What the operator's API answers, as far as these pages show it. */

export type Organizations = { organizations: Organization[]; next: string | null };
export type Organization = {
  id: string;
  name: string;
  tier: string;
  created_at: string;
  open_sessions: number;
  sessions_limit: number;
  credits_available: number;
  credits_reserved: number;
  keys: number;
};

export type OperatorEvents = { events: OperatorEvent[]; next: string | null };
export type OperatorEvent = {
  sequence: number;
  type: string;
  time: string;
  kind: string;
  /** null: of the fleet. */
  organization_id: string | null;
  aggregate_id: string;
  actor: { kind: string; id: string; via?: string; client?: string };
  sentence: string;
};

/** Long work of the process that answered. */
export type Task = {
  state: 'running' | 'done' | 'failed';
  started_at: string;
  ended_at: string | null;
  progress: { done: number; of: number } | null;
  failure: string | null;
};

export type ReadModels = { read_models: ReadModel[]; rebuild: (Task & { name: string }) | null };
export type ReadModel = {
  name: string;
  /** 0: a store beside one in use. */
  version: number;
  views: number;
  checkpoint: number;
  head: number;
  /** null: of another version, which is not folded any more. */
  lag_events: number | null;
  lag_ms: number | null;
  status: string;
};

export type DeadLetters = { dead_letters: DeadLetter[]; total: number; next: string | null };
export type DeadLetter = {
  id: string;
  kind: 'projection' | 'work_queue';
  stream: string;
  sequence: number;
  failed_by: string;
  subject: string | null;
  reason: string;
  at: string;
  attempts: number;
};
export type DecidedDeadLetter = DeadLetter & {
  outcome: 'mended' | 'fails' | 'skipped';
  failure: string | null;
};

export type Audits = {
  ledgers: (Task & { result: LedgerResult | null }) | null;
  archive: (Task & { result: ArchiveResult | null }) | null;
};
export type LedgerResult = {
  agrees: boolean;
  up_to: number;
  unreadable: number;
  organizations: AuditedLedger[];
};
export type AuditedLedger = {
  organization_id: string;
  agrees: boolean;
  sessions: number;
  open: number;
  credits_granted: number;
  credits_available: number;
  credits_reserved: number;
  credits_used: number;
  differences: string[];
};
export type ArchiveResult = {
  agrees: boolean;
  segments: number;
  records: number;
  signer: string | null;
  findings: { segment: number; line: number | null; problem: string }[];
};
