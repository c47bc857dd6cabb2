import type { ServerAddition, ServerProcess } from '../feature.ts';
import { recorderPart } from './recorder/recorder-part.ts';

export function recordingsOfServer(process: ServerProcess): ServerAddition {
  const { config, context, objects, vncPasswordOf, log } = process;
  const { maxBytes } = config.recordings;
  const { now } = context;
  return { part: recorderPart({ objects, vncPasswordOf, log, now, maxBytes }) };
}
