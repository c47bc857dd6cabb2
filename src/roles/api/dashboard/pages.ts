/**
 * Every page of the dashboard: its address, its name, and who may see it. The API serves the
 * dashboard at these addresses; the menu and the command palette list them in this order.
 */
export type PageRow = {
  /** As of a route: `:id` is a parameter. */
  path: string;
  title: string;
  /** Whether the menu lists it. */
  menu: boolean;
  /** The least role of its user; `operator`: OPERATOR_TOKEN. */
  needs: 'viewer' | 'member' | 'admin' | 'operator';
};

const pages = {
  sessions: { path: '/', title: 'Sessions', menu: true, needs: 'viewer' },
  wall: { path: '/wall', title: 'Wall', menu: true, needs: 'viewer' },
  handoffs: { path: '/handoffs', title: 'Hand-offs', menu: true, needs: 'viewer' },
  pool: { path: '/pool', title: 'Pool and queue', menu: true, needs: 'viewer' },
  session: { path: '/sessions/:id', title: 'Session', menu: false, needs: 'viewer' },
  usage: { path: '/usage', title: 'Usage', menu: true, needs: 'viewer' },
  keys: { path: '/keys', title: 'Keys', menu: true, needs: 'admin' },
  webhooks: { path: '/webhooks', title: 'Webhooks', menu: true, needs: 'admin' },
  operator: { path: '/operator', title: 'Operator', menu: true, needs: 'operator' },
} as const satisfies Record<string, PageRow>;

export type PageName = keyof typeof pages;

export const PAGES: Readonly<Record<PageName, PageRow>> = pages;

export const PAGE_NAMES = Object.keys(PAGES) as PageName[];

/** The page at an address, with the parameters of its path; null: there is none. */
export type Place = { name: PageName } & PageProps;

/** What a page gets: the parameters of its address, `id` of `/sessions/:id`. */
export type PageProps = { parameters: Readonly<Record<string, string>> };

export function placeOf(pathname: string): Place | null {
  const parts = pathname.replace(/(?<=.)\/$/, '').split('/');
  for (const name of PAGE_NAMES) {
    const parameters = parametersOf(PAGES[name].path.split('/'), parts);
    if (parameters !== null) return { name, parameters };
  }
  return null;
}

function parametersOf(pattern: string[], parts: string[]): Record<string, string> | null {
  if (pattern.length !== parts.length) return null;
  const parameters: Record<string, string> = {};
  for (const [index, wanted] of pattern.entries()) {
    const part = parts[index] ?? '';
    if (!wanted.startsWith(':') || part === '') {
      if (part !== wanted) return null;
    } else parameters[wanted.slice(1)] = decoded(part);
  }
  return parameters;
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
