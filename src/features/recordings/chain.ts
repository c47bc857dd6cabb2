import { createHash } from 'node:crypto';

/**
 * The chain of a recording: each link is the hash of the one before and of a segment, so that the
 * last link, which the event log has, proves all segments and their order.
 */

/** The chain of a recording without a segment. */
export function firstLink(session: { organizationId: string; id: string }): string {
  return hashOf(`recording ${session.organizationId} ${session.id}`);
}

/** The chain after a segment. @param sha256 of the segment's bytes, hexadecimal */
export function nextLink(chain: string, sha256: string): string {
  return hashOf(`${chain} ${sha256}`);
}

function hashOf(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}
