import type { BrowserPart } from '#src/roles/provisioner/browser-part.ts';
import type { BlackBoxes } from './black-boxes.ts';

/** Has what browsers told recorded with the ends of their sessions. */
export function blackBoxPart(boxes: BlackBoxes): BrowserPart {
  return {
    begin: (browser, session) => boxes.begin(browser, session),
    follow: (session) => boxes.follow(session),
    end({ workloadId }, exit) {
      const told = boxes.end(workloadId, exit);
      const facts = told.then((blackBox) => (blackBox === null ? {} : { blackBox }));
      return { beforeStop: told, beforeReport: facts };
    },
  };
}
