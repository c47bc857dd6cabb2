import type { SessionEvent, SessionState } from '#events/session.ts';
import type { Rejection } from '#src/kernel/errors.ts';
import type { FileCommand } from './commands.ts';
import { notActive } from './rejections.ts';

/**
 * Decides a report about the session's files. A download that is complete when the session stops is
 * still added, as long as the end of its browser is not reported.
 */
export function decideFile(
  command: FileCommand,
  session: SessionState,
): SessionEvent[] | Rejection {
  const isLate = session.status === 'stopping' && command.type !== 'RecordFileRemoved';
  const refusal = isLate ? null : notActive(session);
  if (refusal !== null) return refusal;
  const at = new Date(command.now).toISOString();
  switch (command.type) {
    case 'RecordFileAdded': {
      const { type: _, now: _now, ...file } = command;
      return [{ type: 'session.file-added', data: { ...file, at } }];
    }
    case 'RecordFileRemoved':
      return [{ type: 'session.file-removed', data: { name: command.name, at } }];
    case 'RecordFileRefused': {
      const { type: _, now: _now, ...file } = command;
      return [{ type: 'session.file-refused', data: { ...file, at } }];
    }
  }
}
