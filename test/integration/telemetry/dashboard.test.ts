import { expect, it, describe, test } from 'vitest';
import { families } from '#src/kernel/telemetry/metric-families.ts';
import { unknownMetrics } from '#test/support/service/metrics-document.ts';
import { readText } from '#test/support/sources/source-files.ts';

const FILE = 'deploy/grafana/browser-session-service.json';
const WIDTH = 24;

type Source = { type: string; uid: string };
type Panel = {
  id: number;
  type: string;
  title: string;
  gridPos: { x: number; y: number; w: number; h: number };
  datasource?: Source;
  targets?: { refId: string; expr: string; datasource: Source }[];
};
type Dashboard = {
  uid: string;
  schemaVersion: number;
  templating: { list: { name: string; type: string; query: string }[] };
  panels: Panel[];
};

const dashboard = JSON.parse(readText(FILE)) as Dashboard;
const { panels } = dashboard;
const shown = panels.filter(({ type }) => type !== 'row');

describe(FILE, () => {
  it('can be imported: it names its data source by a variable, and has no id of a database', () => {
    expect(dashboard).toMatchObject({ uid: 'browser-session-service' });
    expect(dashboard).not.toHaveProperty('id');
    expect(dashboard.schemaVersion).toBeGreaterThanOrEqual(39);
    expect(dashboard.templating.list).toEqual([
      expect.objectContaining({ name: 'datasource', type: 'datasource', query: 'prometheus' }),
    ]);
    const chosen = { type: 'prometheus', uid: '${datasource}' };
    for (const { datasource, targets = [] } of shown)
      for (const source of [datasource, ...targets.map((target) => target.datasource)])
        expect(source).toEqual(chosen);
  });

  it('has panels with ids and titles of their own, in rows', () => {
    const ids = panels.map(({ id }) => id);
    expect(new Set(ids).size).toBe(ids.length);
    expect(panels.filter(({ type }) => type === 'row').length).toBeGreaterThan(6);
    for (const { title, targets = [] } of shown) {
      expect(title).not.toBe('');
      const refs = targets.map(({ refId }) => refId);
      expect([title, refs.length > 0, new Set(refs).size]).toEqual([title, true, refs.length]);
    }
  });

  it('has no panel over another, and none beyond the edge', () => {
    const cells = panels.flatMap(({ gridPos: { x, y, w, h } }) =>
      Array.from({ length: w * h }, (_, at) => `${x + (at % w)},${y + Math.floor(at / w)}`),
    );
    expect(new Set(cells).size).toBe(cells.length);
    for (const { gridPos, title } of panels)
      expect([title, gridPos.x + gridPos.w <= WIDTH]).toEqual([title, true]);
  });

  test.each(shown.map((panel) => [`${panel.id} ${panel.title}`, panel] as const))(
    'panel %s names metrics that a process has',
    async (_, { targets = [] }) => {
      for (const { expr } of targets) {
        expect(expr).toMatch(/(?:bss|process|nodejs)_/);
        expect(await unknownMetrics(expr)).toEqual([]);
      }
    },
  );

  it('shows each metric that the service counts itself', () => {
    // Parts of the metrics of the whole service, by server.
    const parts = ['bss_server_leaked_browsers', 'bss_server_leaked_sessions'];
    const text = readText(FILE);
    const missing = Object.keys(families).filter((name) => !text.includes(name));
    expect(missing.filter((name) => !parts.includes(name))).toEqual([]);
  });
});
