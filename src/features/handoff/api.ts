import type { FeatureApi } from '../feature.ts';
import { completeHandoff } from './routes/complete-handoff.post.ts';
import { readHandoffs } from './routes/read-handoffs.get.ts';
import { requestHandoff } from './routes/request-handoff.post.ts';
import { sessionShares } from './routes/shares.ts';
import { takeHandoff } from './routes/take-handoff.post.ts';

export const handoffApi: FeatureApi<null> = {
  open: () => null,
  routes(server, api) {
    requestHandoff(server, api);
    readHandoffs(server, api);
    takeHandoff(server, api);
    completeHandoff(server, api);
    sessionShares(server, api);
  },
};
