import type { BrowserPart } from '#src/roles/provisioner/browser-part.ts';
import { createRecorder, type Recorder, type RecorderOptions } from './recorder.ts';

/** Records the screens of a server's sessions. */
export function recorderPart(options: Omit<RecorderOptions, 'reporter'>): BrowserPart {
  let recorder: Recorder | null = null;
  return {
    open: (_, reporter) => void (recorder = createRecorder({ ...options, reporter })),
    begin: (browser, session, isAdopted) => recorder?.start(browser, session, isAdopted),
    follow: (session) => recorder?.follow(session),
    end({ workloadId }) {
      const finished = recorder?.finish(workloadId) ?? Promise.resolve();
      return { beforeReport: finished.then(() => ({})) };
    },
    leave: async () => recorder?.leave(),
  };
}
