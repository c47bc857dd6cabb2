import type { ComponentType } from 'preact';
import type { PageName, PageProps } from '../../roles/api/dashboard/pages.ts';
import { SessionsPage } from './sessions/sessions-page.tsx';

type PageComponent = ComponentType<PageProps>;

/** The component of each page: at hand, or loaded when the page is first opened. */
type Source = { load: () => Promise<PageComponent>; loaded: PageComponent | null };

const lazy = (load: () => Promise<PageComponent>): Source => ({ load, loaded: null });

const sources: Record<PageName, Source> = {
  // The first page is in the first script: a chunk of its own would come a round trip later.
  sessions: { load: () => Promise.resolve(SessionsPage), loaded: SessionsPage },
  session: lazy(async () => (await import('./session/session-page.tsx')).SessionPage),
  wall: lazy(async () => (await import('./wall/wall-page.tsx')).WallPage),
  handoffs: lazy(async () => (await import('./handoffs/handoffs-page.tsx')).HandoffsPage),
  pool: lazy(async () => (await import('./pool/pool-page.tsx')).PoolPage),
  usage: lazy(async () => (await import('./usage/usage-page.tsx')).UsagePage),
  keys: lazy(async () => (await import('./keys/keys-page.tsx')).KeysPage),
  webhooks: lazy(async () => (await import('./webhooks/webhooks-page.tsx')).WebhooksPage),
  operator: lazy(async () => (await import('./operator/operator-page.tsx')).OperatorPage),
};

/** A page's component; null: it has to be loaded first. */
export const componentOf = (name: PageName) => sources[name].loaded;

export async function loadPage(name: PageName): Promise<void> {
  const source = sources[name];
  source.loaded ??= await source.load();
}
