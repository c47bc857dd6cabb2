import { Type, type Static } from 'typebox';
import type { EventOf } from '../envelope.ts';
import { CarriedForward } from '../fields.ts';
import type { AggregateRef } from '../subjects.ts';

/** The event store's one archive. */
export const ARCHIVE = { kind: 'archive', id: 'events' } as const satisfies AggregateRef;

/** What the event store knows of its archive's end: enough to prove all that is before. */
const head = {
  segment: Type.Integer({ minimum: 1, description: 'number of the last sealed segment' }),
  lastSequence: Type.Integer({ minimum: 1, description: 'sequence of the last archived event' }),
  manifestSha256: Type.String({
    pattern: '^[0-9a-f]{64}$',
    description: 'SHA-256 of the file of that segment’s manifest, which names the one before',
  }),
  signer: Type.String({
    minLength: 1,
    maxLength: 128,
    description: 'fingerprint of the key that signed the manifest',
  }),
};

export const archiveEvents = {
  'archive.sealed': Type.Object(head),
  'archive.carried-forward': CarriedForward,
};
export type ArchiveEvent = EventOf<typeof archiveEvents>;

export const ArchiveState = Type.Object(head);
export type ArchiveState = Static<typeof ArchiveState>;
