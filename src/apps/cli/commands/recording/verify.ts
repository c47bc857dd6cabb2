import { isRejection, reject } from '#src/kernel/errors.ts';
import { verifyRecording } from '#src/features/recordings/verify.ts';
import { parseId } from '../../arguments.ts';
import type { Command } from '../../command.ts';
import { sessionOf } from './recorded.ts';

/** Exit code 1 where the recording is not what the event log says. */
export const verify: Command = {
  read(options) {
    const id = options.operand(0, parseId);
    return async (service) => {
      const session = await sessionOf(service, id);
      if (isRejection(session)) return session;
      const { objects, context } = service;
      const check = await verifyRecording(context.eventStore, objects, session);
      const { proved, unrecorded, gaps, findings } = check;
      if (proved + unrecorded + gaps + findings.length === 0)
        return reject('RECORDING_NOT_FOUND', { session_id: id });
      const later = unrecorded === 0 ? '' : `, ${unrecorded} not in the event log`;
      const summary = `${proved} segments as in the event log${later}; ${gaps} gaps`;
      return {
        json: { session_id: id, proved, unrecorded, gaps, findings },
        text: [...findings, summary].join('\n'),
        differs: findings.length > 0,
      };
    };
  },
};
