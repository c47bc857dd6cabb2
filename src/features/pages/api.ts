import type { FeatureApi } from '../feature.ts';
import { createOneCalls, type OneCalls } from './one-calls.ts';
import { oneCallRoutes } from './routes/one-call.post.ts';

export const pagesApi: FeatureApi<OneCalls> = {
  open: ({ log }) => createOneCalls({ log }),
  routes: (server, api, oneCalls) => oneCallRoutes(server, { ...api, oneCalls }),
};
