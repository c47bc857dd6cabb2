import type { ServerAddition, ServerProcess } from '../feature.ts';
import { blackBoxPart } from './black-box-part.ts';
import { createBlackBoxes } from './black-boxes.ts';

export function blackBoxOfServer({ browsers, objects, log }: ServerProcess): ServerAddition {
  const boxes = createBlackBoxes({ log, objects, browsers });
  return {
    part: blackBoxPart(boxes),
    observer: boxes.part,
    async [Symbol.asyncDispose]() {
      await boxes[Symbol.asyncDispose]();
    },
  };
}
