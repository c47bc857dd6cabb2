import type { Feature } from '../feature.ts';

/** A page's picture, PDF or content in one call. */
export const pages: Feature = {
  name: 'pages',
  api: async () => (await import('./api.ts')).pagesApi,
};
