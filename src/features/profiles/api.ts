import type { FeatureApi } from '../feature.ts';
import { profileRoutes } from './routes/profiles.ts';
import { saveProfile } from './routes/save-profile.post.ts';

export const profilesApi: FeatureApi<null> = {
  open: () => null,
  routes(server, api) {
    profileRoutes(server, api);
    saveProfile(server, api);
  },
};
