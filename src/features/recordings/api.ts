import type { FeatureApi } from '../feature.ts';
import { sessionRecording } from './routes/recording.get.ts';

export const recordingsApi: FeatureApi<null> = { open: () => null, routes: sessionRecording };
