import type { Static, TSchema } from 'typebox';
import { Compile } from 'typebox/compile';
import { reject, type Rejected } from '#src/errors.ts';
import { DURATION_DEFAULT_MS, parseDuration } from '../../domain/session/duration.ts';

/** What a validator says is wrong. */
type Flaw = {
  keyword: string;
  instancePath: string;
  message: string;
  params: { additionalProperties?: string[] };
};

/** Reads a request body against its schema; no body counts as one without fields. */
export function createBodyReader<Schema extends TSchema>(schema: Schema) {
  const validator = Compile(schema);
  return function read(body: unknown): Static<Schema> | Rejected {
    const value = body === undefined ? {} : body;
    return validator.Check(value) ? value : refusalFor(validator.Errors(value) as Flaw[]);
  };
}

/** Tells the first thing that is wrong, and of fields that are not known all. */
function refusalFor(flaws: readonly Flaw[]): Rejected {
  const [first] = flaws;
  const field = first?.instancePath.slice(1).replaceAll('/', '.') || 'body';
  if (first?.keyword !== 'boolean')
    return invalid({ field }, `${field}: ${first?.message ?? 'is not valid'}.`);
  const unknown = flaws.find(({ params }) => params.additionalProperties !== undefined);
  const context = { field, unknown: unknown?.params.additionalProperties ?? [field] };
  return invalid(context, `${field}: is not a known field.`);
}

function invalid(context: Record<string, unknown>, message: string): Rejected {
  return reject('INVALID_REQUEST', context, { message });
}

/** A duration as it came; absent means the default. The refusal carries it as it was sent. */
export function readDuration(sent: unknown, field = 'duration'): number | Rejected {
  if (sent === undefined) return DURATION_DEFAULT_MS;
  const context = field === 'duration' ? { duration: sent } : { duration: sent, field };
  return parseDuration(sent) ?? reject('INVALID_DURATION', context);
}
