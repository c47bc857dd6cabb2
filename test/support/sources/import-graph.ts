import type { SourceFile } from './source-files.ts';

/** The product's files; tests are not part of its structure. */
export function productFiles(files: readonly SourceFile[]): SourceFile[] {
  return files.filter(({ path }) => /^(events|src|projections)\//.test(path));
}

/**
 * The groups of nodes that import each other, directly or by way of others; imports of types count
 * as well.
 * @param imports each node with the nodes that it imports
 */
export function circlesOf(imports: ReadonlyMap<string, readonly string[]>): string[][] {
  const reachable = new Map(
    [...imports.keys()].map((node) => [node, reachableFrom(node, imports)]),
  );
  const seen = new Set<string>();
  const circles: string[][] = [];
  for (const [node, targets] of reachable) {
    if (seen.has(node) || !targets.has(node)) continue;
    const circle = [...targets].filter((other) => reachable.get(other)?.has(node) === true);
    for (const member of circle) seen.add(member);
    circles.push(circle.toSorted());
  }
  return circles;
}

/** The length of the longest chain of imports, counted in nodes; the graph has no cycle. */
export function floorsOf(imports: ReadonlyMap<string, readonly string[]>): number {
  const known = new Map<string, number>();
  function floorOf(node: string): number {
    const before = known.get(node);
    if (before !== undefined) return before;
    const below = (imports.get(node) ?? []).filter((other) => imports.has(other));
    const floor = 1 + Math.max(0, ...below.map(floorOf));
    known.set(node, floor);
    return floor;
  }
  return Math.max(0, ...[...imports.keys()].map(floorOf));
}

/** Each file with the files of the product that it imports. */
export function importsByFile(files: readonly SourceFile[]): Map<string, string[]> {
  const known = new Set(files.map(({ path }) => path));
  return new Map(files.map(({ path, imports }) => [path, imports.filter((one) => known.has(one))]));
}

/** The same between layers: a folder of `src`, `events`, `projections`, or a file beside them. */
export function importsByLayer(
  files: readonly SourceFile[],
  layerOf: (path: string) => string | null,
): Map<string, string[]> {
  const layers = new Map<string, Set<string>>();
  for (const [path, imported] of importsByFile(files)) {
    const layer = layerOf(path) ?? path;
    const targets = layers.get(layer) ?? new Set<string>();
    for (const one of imported) targets.add(layerOf(one) ?? one);
    targets.delete(layer);
    layers.set(layer, targets);
  }
  return new Map([...layers].map(([layer, targets]) => [layer, [...targets]]));
}

function reachableFrom(
  start: string,
  imports: ReadonlyMap<string, readonly string[]>,
): ReadonlySet<string> {
  const found = new Set<string>();
  const open = [...(imports.get(start) ?? [])];
  for (let node = open.pop(); node !== undefined; node = open.pop()) {
    if (found.has(node)) continue;
    found.add(node);
    open.push(...(imports.get(node) ?? []));
  }
  return found;
}

/**
 * The files that Node loads with a file: by imports of more than types, not by those that are
 * written as calls, which load when they are reached.
 */
export function loadedWith(start: string, files: readonly SourceFile[]): string[] {
  const loads = new Map(files.map(({ path, loads: loaded }) => [path, loaded]));
  return [...reachableFrom(start, loads)];
}
