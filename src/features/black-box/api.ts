import type { FeatureApi } from '../feature.ts';
import { sessionThumbnail } from './routes/session-thumbnail.get.ts';

export const blackBoxApi: FeatureApi<null> = { open: () => null, routes: sessionThumbnail };
