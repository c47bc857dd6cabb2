import type { FeatureApi } from '../feature.ts';
import { sessionFiles } from './routes/read-files.ts';
import { writeFiles } from './routes/write-files.ts';

export const filesApi: FeatureApi<null> = {
  open: () => null,
  routes(server, api) {
    sessionFiles(server, api);
    writeFiles(server, api);
  },
};
