import type { Servers } from './roles.ts';
import type { World } from './world.ts';

/** A defect that the servers of a simulation get, so that it is known to be found. */
export type Bug = { name: string; plant: (servers: Servers, world: World) => Servers };
