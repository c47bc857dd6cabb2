import { findApi, ServiceNotFoundError } from '#src/start/find-service.ts';
import { createClient, NoAnswer, ServiceError, type Client } from '#src/apps/client/client.ts';
import { readConfig } from '#src/kernel/config/config.ts';
import { reject, type Rejection } from '#src/kernel/errors.ts';
import type { Arguments, Command, Output } from './command.ts';
import { UsageError } from './errors.ts';
import { printable } from './output.ts';

type ApiAction = (client: Client) => Promise<Output | null>;

/** A command that asks the API, as the key's user, and needs nothing else of the service. */
export function byApi(read: (options: Arguments) => ApiAction): Command {
  return {
    read: () => {
      throw new Error('it asks the API alone');
    },
    readAlone(options) {
      const act = read(options);
      const url = options.optional('url', parseUrl);
      return () => ask(act, url);
    },
  };
}

async function ask(act: ApiAction, given: string | null): Promise<Output | Rejection | null> {
  const apiKey = process.env['BSS_API_KEY'] ?? '';
  if (apiKey === '')
    return reject('UNAUTHORIZED', {}, { message: 'BSS_API_KEY is not set: an API key.' });
  const url = given ?? (process.env['API_URL'] || (await findApi(readConfig(process.env))));
  try {
    return await act(createClient({ url, apiKey }));
  } catch (error) {
    if (error instanceof ServiceError)
      return reject(error.error, error.context, { message: explain(error) });
    if (error instanceof NoAnswer) throw new ServiceNotFoundError(error.message, { cause: error });
    // Of this machine's files: what the system says is all there is to say.
    if ((error as NodeJS.ErrnoException).code !== undefined)
      return reject('INVALID_REQUEST', {}, { message: (error as Error).message });
    throw error;
  }
}

/** With what the API tells beside the message: which session it is, or the reason. */
function explain({ message, context }: ServiceError): string {
  const facts = Object.entries(context).map(([name, value]) => {
    return `${name}: ${typeof value === 'string' ? value : JSON.stringify(value)}`;
  });
  return printable(facts.length === 0 ? message : `${message} (${facts.join(', ')})`);
}

function parseUrl(text: string): string {
  if (!/^https?:\/\//.test(text) || !URL.canParse(text))
    throw new UsageError('is no address, as http://127.0.0.1:8080');
  return text;
}
