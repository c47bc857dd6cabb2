import type { Actor, Via } from '#events/envelope.ts';

const DOORS: Record<Via, string> = { mcp: 'MCP', webdriver: 'WebDriver', 'one-call': 'one call' };

/** The actor of an event in words: `user:ada through MCP (agent 1.0)`. */
export function describeActor(actor: Actor): string {
  return `${actor.kind}:${actor.id}${describeDoor(actor)}`;
}

/** ` through MCP (agent 1.0)`; empty where the request came through the REST API. */
export function describeDoor({ via, client }: { via?: string; client?: string }): string {
  if (via === undefined) return '';
  const door = (DOORS as Record<string, string | undefined>)[via] ?? via;
  return ` through ${door}${client === undefined ? '' : ` (${client})`}`;
}
