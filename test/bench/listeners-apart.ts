import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import type { Answer, Order } from './listeners.ts';

/**
 * Listeners in a separate process: the measuring process and the listeners do not delay each other.
 */
export type Listeners = {
  open(asked: Omit<Extract<Order, { do: 'open' }>, 'do'>): Promise<void>;
  subscribe(natsUrl: string, subject: string): Promise<void>;
  /** Waits until all events were received, 30 s at most. */
  tell(expected: number[], probes: number[]): Promise<Answer>;
} & Disposable;

type Said = { answer?: Answer | null; failure?: string };

export function startListeners(): Listeners {
  const program = fileURLToPath(new URL('listeners.ts', import.meta.url));
  const child = fork(program, { serialization: 'advanced', execArgv: [] });

  async function order(wanted: Order): Promise<Answer | null> {
    const answered = once(child, 'message') as Promise<[Said]>;
    child.send(wanted);
    const ended = once(child, 'exit').then((): [Said] => [{ failure: 'they have ended' }]);
    const [{ answer, failure }] = await Promise.race([answered, ended]);
    if (failure !== undefined) throw new Error(failure);
    return answer ?? null;
  }
  return {
    async open(asked) {
      await order({ do: 'open', ...asked });
    },
    async subscribe(natsUrl, subject) {
      await order({ do: 'subscribe', natsUrl, subject });
    },
    async tell(expected, probes) {
      const answer = await order({ do: 'tell', expected, probes });
      if (answer === null) throw new Error('the listeners say nothing');
      return answer;
    },
    [Symbol.dispose]: () => void child.kill('SIGKILL'),
  };
}
