import type { BrowserPart } from '#src/roles/provisioner/browser-part.ts';
import type { SessionFilesOfServer } from './session-files.ts';

/** Stores the files of a server's sessions before their browsers are gone. */
export function filesPart(files: SessionFilesOfServer): BrowserPart {
  return {
    open: (browsers, reporter) => files.start(browsers, reporter),
    end: ({ workloadId, session }) =>
      session === null ? {} : { beforeStop: files.end(workloadId) },
    leave: () => files.leave(),
  };
}
