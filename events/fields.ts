import { Type } from 'typebox';

/** Fields that events of several aggregates share, with their descriptions. */

const PATTERN = '^[A-Za-z0-9_-]{1,64}$';

export const OrganizationId = Type.String({ pattern: PATTERN, description: 'the organization' });
export const SessionId = Type.String({ pattern: PATTERN, description: 'the session' });
export const WorkloadId = Type.String({ pattern: PATTERN, description: 'the browser' });
export const ServerId = Type.String({ pattern: PATTERN, description: 'the server of the browser' });
export const UserId = Type.String({ minLength: 1, maxLength: 256, description: 'the user' });
export const Moment = Type.String({
  pattern: '^\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\d\\.\\d{3}Z$',
  description: 'ISO 8601 UTC, milliseconds',
});
export const KeyId = Type.String({ pattern: PATTERN, description: 'id of the key, not a secret' });

/**
 * Data of each kind's `carried-forward`. The event changes nothing; it carries the state of its
 * aggregate again, so that all earlier events may be purged from the log.
 */
export const CarriedForward = Type.Object({
  archivedUpTo: Type.Integer({
    minimum: 1,
    description: 'sequence of the last event that is in the archive and may be purged',
  }),
});

export const ExitCode = Type.Union([Type.Integer(), Type.Null()], {
  description: 'exit code of the browser’s process; null: it was killed, or never ran',
});
