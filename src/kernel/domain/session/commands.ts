import type { EgressRules, EgressTraffic } from '#events/egress.ts';
import type { BlackBox } from '#events/session/black-box.ts';
import type { AskedProfile, NotSavedReason } from '#events/profile.ts';
import type {
  BrowserOptions,
  FailureReason,
  Repeatable,
  SessionStatus,
  SessionWorkload,
  StopReason,
} from '#events/session.ts';
import type { RecordingGap, RecordingSegment } from '#events/session/recording.ts';
import type { FileOrigin, FileRefusal } from '#events/session/files.ts';
import type { ShareMode } from '#events/share.ts';

/** The commands of a session. `now` is milliseconds since the epoch: time is data. */
export type SessionCommand =
  | CreateSession
  | { type: 'QueueSession'; now: number }
  | { type: 'AssignSession'; workloadId: string; serverId: string }
  /** A server returns the session: no browser could be launched for it there. */
  | { type: 'RequeueSession'; serverId: string; detail: string }
  | { type: 'ActivateSession'; workload: SessionWorkload; now: number }
  | ExtendSession
  | { type: 'RecordAccess'; via: 'api' | 'cdp' | 'vnc'; now: number }
  /** Makes the session's addresses worthless; it gets others. */
  | { type: 'RotateAccess'; now: number }
  | UpdateSession
  | HandoffCommand
  | ShareCommand
  /** The provisioner reports what the browser has sent, received and was refused since the last. */
  | { type: 'RecordEgress'; traffic: EgressTraffic; now: number }
  | FileCommand
  | SaveProfile
  | ProfileOutcome
  | StopSession
  | StoreRecording
  /** The expiry-warning timer has fired. */
  | { type: 'WarnOfExpiry'; now: number }
  /** The expiry timer has fired. */
  | { type: 'ExpireSession'; now: number }
  /** The idle timer has fired. */
  | { type: 'StopIdleSession'; now: number }
  /** The queue timer has fired. */
  | { type: 'FailQueuedSession'; queueTimeoutMs: number; now: number }
  /** The provisioner reports that the browser has ended. */
  | { type: 'ConfirmStopped'; blackBox?: BlackBox; now: number }
  /** The provisioner reports that the user closed the browser, which has ended. */
  | { type: 'ReportBrowserClosed'; closedAt: number; blackBox?: BlackBox; now: number }
  | {
      type: 'FailSession';
      reason: FailureReason;
      detail: string;
      exitCode: number | null;
      /** The server that reports it: it cannot fail another one's session. Absent: any session. */
      serverId?: string;
      blackBox?: BlackBox;
      now: number;
    };

/**
 * The session's server reports what it has stored of the recording; times are ISO 8601. `chain` is
 * that of the last segment, or the one before if there is none.
 */
export type StoreRecording = {
  type: 'StoreRecording';
  segments: RecordingSegment[];
  gaps: RecordingGap[];
  chain: string;
  until: string;
};

export type StopSession = {
  type: 'StopSession';
  reason: StopReason;
  /** What the caller says about the reason. */
  note?: string;
  /** A session in another status, or without all of the labels, is left alone; absent: any. */
  onlyIf?: { status?: SessionStatus; labels?: Record<string, string> };
  now: number;
};

/** Fields that are absent stay as they are. */
export type UpdateSession = {
  type: 'UpdateSession';
  name?: string;
  description?: string;
  labels?: Record<string, string>;
};

/** Commands of a session's hand-off; `by` is the user. */
export type HandoffCommand =
  | {
      type: 'RequestHandoff';
      handoffId: string;
      instructions: string;
      timeoutMs: number;
      by: string;
      now: number;
    }
  | { type: 'TakeHandoff'; handoffId: string; by: string; now: number }
  | {
      type: 'CompleteHandoff';
      handoffId: string;
      by: string;
      success: boolean;
      note: string;
      now: number;
    }
  /** The hand-off's timer has fired. */
  | { type: 'ExpireHandoff'; now: number };

/** Commands of a session's shares; `by` is the user. */
export type ShareCommand =
  | {
      type: 'CreateShare';
      shareId: string;
      mode: ShareMode;
      lifetimeMs: number;
      by: string;
      now: number;
    }
  /** A client connected by the address of the share. */
  | { type: 'RecordShareUse'; shareId: string; now: number }
  | { type: 'RevokeShare'; shareId: string; by: string; now: number };

/** What has happened to a session's files, as its provisioner reports it. */
export type FileCommand =
  | {
      type: 'RecordFileAdded';
      fileId: string;
      name: string;
      bytes: number;
      /** 64 hexadecimal digits. */
      sha256: string;
      origin: FileOrigin;
      /** Of a download, by CDP. */
      guid?: string;
      now: number;
    }
  | { type: 'RecordFileRemoved'; name: string; now: number }
  | {
      type: 'RecordFileRefused';
      name: string;
      origin: FileOrigin;
      reason: FileRefusal;
      bytes?: number;
      guid?: string;
      now: number;
    };
/** A client asks for the session's profile to be saved while the session goes on. */
export type SaveProfile = { type: 'SaveProfile'; now: number };
/** The provisioner has saved the session's profile, or could not. */
export type ProfileOutcome = {
  type: 'ReportProfile';
  outcome: { version: number; bytes: number } | { reason: NotSavedReason; detail: string };
  /** False: the session goes on. */
  atEnd: boolean;
};

export type CreateSession = {
  type: 'CreateSession';
  name: string;
  description: string;
  userId: string;
  labels: Record<string, string>;
  browser: BrowserOptions;
  /** What the browser may connect to; absent: everything but private networks. */
  egress?: EgressRules;
  durationMs: number;
  idleTimeoutMs: number | null;
  /** Hash of the request, if it came with an Idempotency-Key; else null. */
  fingerprint: string | null;
  /** The organization's weight while requests wait; absent: 1. */
  queueWeight?: number;
  /** True: what the screen shows is recorded. */
  record?: true;
  /** Present: its end is to tell nothing of what its pages did. */
  blackBox?: false;
  /** The MCP session that it ends with. */
  owner?: { mcpSessionId: string };
  /** Decided with the profile itself; absent: none. */
  profile?: AskedProfile;
  now: number;
};

export type ExtendSession = {
  type: 'ExtendSession';
  byMs: number;
  maxLifetimeMs: number;
  /** The duration as the caller wrote it, for the rejection. */
  duration: string;
  /** Present if the request came with an Idempotency-Key. */
  repeatable?: Repeatable;
  now: number;
};
