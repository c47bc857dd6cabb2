import type { FeatureApi } from '../feature.ts';
import { extensions } from './routes/extensions.ts';
import { uploadExtension } from './routes/upload-extension.post.ts';

export const extensionsApi: FeatureApi<null> = {
  open: () => null,
  routes(server, api) {
    uploadExtension(server, api);
    extensions(server, api);
  },
};
