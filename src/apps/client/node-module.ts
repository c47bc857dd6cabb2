import type * as fs from 'node:fs';
import type * as promises from 'node:fs/promises';

type NodeModules = { 'node:fs': typeof fs; 'node:fs/promises': typeof promises };
type Process = {
  getBuiltinModule?: <Name extends keyof NodeModules>(name: Name) => NodeModules[Name];
};

/**
 * A module of Node. An import would keep the client from loading in a browser.
 * @throws TypeError outside of Node
 */
export function nodeModule<Name extends keyof NodeModules>(name: Name): NodeModules[Name] {
  const { process } = globalThis as { process?: Process };
  const found = process?.getBuiltinModule?.(name);
  if (found === undefined) throw new TypeError('paths of files are for Node (20.16 and later)');
  return found;
}
