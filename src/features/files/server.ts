import type { ServerAddition, ServerProcess } from '../feature.ts';
import { filesPart } from './files-part.ts';
import { createSessionFiles } from './session-files.ts';

export function filesOfServer(process: ServerProcess): ServerAddition {
  const { config, context, objects, browsers, log } = process;
  const { eventStore, now } = context;
  const { folders } = browsers;
  const files = createSessionFiles({
    eventStore,
    now,
    objects,
    folders,
    log,
    limits: config.files,
  });
  return { part: filesPart(files), observer: files.part, answers: { files: files.answer } };
}
