import { setTimeout as delay } from 'node:timers/promises';
import { accountSubject, ALL_ACCOUNTS } from '#events/object-subjects.ts';
import type { JetStreamConnection } from '#src/kernel/event-store/jetstream/connection.ts';
import { isWrongLastSequence } from '#src/kernel/event-store/jetstream/request.ts';
import { newId } from '#src/kernel/ids.ts';
import { ANSWER_MS, createObjectRequests } from './requests.ts';
import { ObjectStoreUnavailable } from '../object-store.ts';
import type { Account } from '../accounts/account.ts';
import type { Accounts } from '../accounts/accounts.ts';

/** `writer`: of the change, by which one whose answer was lost knows itself. */
type Stored = { account: Account; writer: string };

/** Processes that change one account at once: each wins in the end. */
const TRIES_MAX = 100;
/** The longest pause between two tries. */
const PAUSE_MS = 20;

/**
 * Keeps each account as the last message on its subject in the stream OBJECTS, where the objects'
 * own heads are: what may store objects may change accounts, and a backup has both. A change is
 * written only if there was no other one since it was read.
 */
export function createJetStreamAccounts(connection: JetStreamConnection): Accounts {
  const requests = createObjectRequests(connection, ANSWER_MS);
  /** The changes of this process to one account come one after the other. */
  const last = new Map<string, Promise<unknown>>();

  async function find(organizationId: string) {
    const message = await requests.last(accountSubject(organizationId));
    return message === null
      ? { account: null, writer: '', sequence: 0 }
      : { ...message.json<Stored>(), sequence: message.seq };
  }
  async function change(organizationId: string, next: Parameters<Accounts['change']>[1]) {
    const writer = newId('chg');
    let written: Account | null = null;
    for (let tries = 0; tries < TRIES_MAX; tries += 1) {
      const found = await find(organizationId);
      if (found.writer === writer) return written;
      written = next(found.account);
      if (written === null) return null;
      const stored: Stored = { account: written, writer };
      try {
        const subject = accountSubject(organizationId);
        await requests.store(subject, JSON.stringify(stored), found.sequence);
        return written;
      } catch (error) {
        if (!isWrongLastSequence(error)) throw error;
      }
      await delay(Math.random() * PAUSE_MS);
    }
    throw new ObjectStoreUnavailable(new Error('an account changes all the time'));
  }
  return {
    read: async (organizationId) => (await find(organizationId)).account,
    async change(organizationId, next) {
      const earlier = last.get(organizationId) ?? Promise.resolve();
      const changing = earlier.then(() => change(organizationId, next));
      const done = changing.catch(() => undefined);
      last.set(organizationId, done);
      void done.then(() => last.get(organizationId) === done && last.delete(organizationId));
      return changing;
    },
    async organizations() {
      const subjects = await requests.subjects(ALL_ACCOUNTS);
      return subjects.map((subject) => subject.slice(ALL_ACCOUNTS.length - 1));
    },
  };
}
