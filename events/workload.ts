import { Type, type Static } from 'typebox';
import type { EventOf } from './envelope.ts';
import {
  CarriedForward,
  ExitCode,
  OrganizationId,
  ServerId,
  SessionId,
  WorkloadId,
} from './fields.ts';
import { BrowserOptions } from './session.ts';

/** The reason why a browser is ended. */
export const TerminationReason = Type.Union(
  [
    Type.Literal('session_ended'),
    Type.Literal('retired'),
    Type.Literal('launch_failed'),
    Type.Literal('closed'),
    Type.Literal('crashed'),
    Type.Literal('out_of_memory'),
    Type.Literal('server_stopped'),
    Type.Literal('server_lost'),
  ],
  { description: 'why the browser is terminated' },
);
export type TerminationReason = Static<typeof TerminationReason>;

/** The browser options of the launch; absent if the caller set none. */
const Launched = Type.Optional(BrowserOptions);

/**
 * A workload is one browser, used once: from the decision to launch it until nothing of it is left.
 */
export const workloadEvents = {
  'workload.provisioning': Type.Object({ serverId: ServerId, browser: Launched }),
  'workload.launching': Type.Object({}),
  'workload.idle': Type.Object({
    launchMs: Type.Integer({ minimum: 0, description: 'milliseconds from launching to ready' }),
  }),
  'workload.assigned': Type.Object({ organizationId: OrganizationId, sessionId: SessionId }),
  'workload.terminating': Type.Object({ reason: TerminationReason }),
  'workload.terminated': Type.Object({
    reason: TerminationReason,
    exitCode: ExitCode,
  }),
  'workload.carried-forward': CarriedForward,
};
export type WorkloadEvent = EventOf<typeof workloadEvents>;

export const WorkloadState = Type.Object({
  id: WorkloadId,
  serverId: ServerId,
  status: Type.Union([
    Type.Literal('provisioning'),
    Type.Literal('launching'),
    Type.Literal('idle'),
    Type.Literal('busy'),
    Type.Literal('terminating'),
    Type.Literal('terminated'),
  ]),
  organizationId: Type.Union([OrganizationId, Type.Null()]),
  sessionId: Type.Union([SessionId, Type.Null()]),
  browser: Launched,
});
export type WorkloadState = Static<typeof WorkloadState>;
