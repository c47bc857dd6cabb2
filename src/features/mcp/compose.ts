import { createJetStreamMcpSessions } from '#src/kernel/messaging/jetstream/jetstream-mcp-sessions.ts';
import type { FeatureProcess } from '../feature.ts';
import type { McpParts } from './mcp.ts';

export async function openMcp({ config, connection }: FeatureProcess): Promise<McpParts> {
  return { ...config.mcp, sessions: await createJetStreamMcpSessions(connection) };
}
