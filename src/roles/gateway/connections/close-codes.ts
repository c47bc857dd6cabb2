/**
 * Why a connection ended, as the close code of a VNC WebSocket and the sentence the viewer shows.
 * The keys are the session's end reasons and the gateway's own reasons. A code never changes its
 * meaning.
 */
export const closeCodes = {
  user: { code: 4001, sentence: 'The session was stopped.' },
  expired: { code: 4002, sentence: 'The session reached the end of its time.' },
  idle: { code: 4003, sentence: 'The session was stopped because it was not used.' },
  failed: { code: 4004, sentence: 'The session failed.' },
  browser_gone: { code: 4005, sentence: 'The browser closed the connection.' },
  organization: { code: 4006, sentence: 'The organization’s sessions were stopped.' },
  operator: { code: 4007, sentence: 'An operator stopped the session.' },
  slow_client: { code: 4008, sentence: 'This viewer took no data for too long.' },
  browser_crashed: { code: 4009, sentence: 'The browser crashed.' },
  out_of_memory: { code: 4010, sentence: 'The browser ran out of memory.' },
  server_lost: { code: 4011, sentence: 'The server that ran the browser was lost.' },
  launch_failed: { code: 4012, sentence: 'The browser could not be started.' },
  queue_timeout: { code: 4013, sentence: 'No browser became free in time.' },
  connection_idle: { code: 4014, sentence: 'Nothing happened on this connection for too long.' },
  gateway_closing: { code: 4015, sentence: 'The service is restarting; connect again.' },
  client_gone: { code: 4016, sentence: 'The viewer no longer answered.' },
  browser_closed: { code: 4017, sentence: 'The browser was closed.' },
  wrong_password: { code: 4018, sentence: 'That was not the password of this session.' },
  access_rotated: { code: 4019, sentence: 'This link was replaced by another.' },
  key_revoked: { code: 4020, sentence: 'The API key that this link was issued to was revoked.' },
  share_ended: { code: 4021, sentence: 'This shared link has expired or was taken back.' },
  handoff_ended: { code: 4022, sentence: 'The hand-off that this link was for is over.' },
  not_understood: {
    code: 4023,
    sentence: 'This viewer sent something unknown while it may only watch.',
  },
  text_too_long: {
    code: 4024,
    sentence: 'The text of your clipboard is too long for the browser: 1 MB is the most.',
  },
} as const;

/** Why a connection of a share or a hand-off ends with it. */
export const endOfGrant = { share: 'share_ended', handoff: 'handoff_ended' } as const;

type CloseReason = keyof typeof closeCodes;

/** The close code and reason; an unknown reason counts as `failed`. */
export function closeOf(reason: string): { code: number; reason: string } {
  const known: CloseReason = Object.hasOwn(closeCodes, reason) ? (reason as CloseReason) : 'failed';
  return { code: closeCodes[known].code, reason: known };
}
