import type { Static } from 'typebox';
import type * as schemas from '#src/features/recordings/routes/schemas.ts';
import { openContent, type FileContent } from './file-content.ts';
import { ServiceError } from './failures.ts';
import type { CallOptions, Requester, StreamOptions } from './requester.ts';

/** What was recorded of a session's screen: its segments, and the times that are missing. */
export type SessionRecording = Static<typeof schemas.Recording>;
/** Some seconds of a recording; `name` is for `recordingSegment`. */
export type RecordingSegment = SessionRecording['segments'][number];

/** The recording of one session, by its id. */
export type SessionRecordings = {
  /**
   * The index. While the session is active it grows, some seconds behind; it can be read for some
   * time after the session's end. @throws ServiceError with RECORDING_NOT_FOUND
   */
  recording(id: string, options?: CallOptions): Promise<SessionRecording>;
  /**
   * A segment, as it is stored: deflated with zlib. It never changes.
   * @throws ServiceError with RECORDING_NOT_FOUND
   */
  recordingSegment(id: string, name: string, options?: StreamOptions): Promise<FileContent>;
};

/** @param pathOf the path of a session */
export function createRecordings(
  requester: Requester,
  pathOf: (id: string) => string,
): SessionRecordings {
  return {
    recording: (id, options) =>
      requester.json({ method: 'GET', path: `${pathOf(id)}/recording`, ...options }),
    async recordingSegment(id, name, options) {
      // In an address these are no names: the request would be another one.
      if (name === '.' || name === '..') throw notFound(id);
      const path = `${pathOf(id)}/recording/${encodeURIComponent(name)}`;
      return await openContent(requester, path, name, options);
    },
  };
}

/** As the service refuses it. */
function notFound(id: string): ServiceError {
  const message = 'The recording has no such segment.';
  const context = { session_id: id };
  return new ServiceError({ error: 'RECORDING_NOT_FOUND', message, code: 404, context });
}
