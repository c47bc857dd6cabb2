import { describe, expect, it } from 'vitest';
import { createFailedAttempts } from '#src/features/nats-tenants/failed-attempts.ts';
import { createKeyConnections } from '#src/features/nats-tenants/key-connections.ts';

describe('connections of a key', () => {
  /** Open connections, as the servers report them; admitted ones connect at once. */
  function setUp(max: number) {
    const connected: string[] = [];
    let asked = 0;
    const connections = createKeyConnections({
      max,
      async list() {
        asked += 1;
        await new Promise(setImmediate);
        return [...connected];
      },
    });
    async function come(key: string): Promise<boolean> {
      const isIn = await connections.take(key);
      if (isIn) connected.push(key);
      return isIn;
    }
    return { connected, come, asked: () => asked };
  }

  it('are admitted up to the limit, however many arrive at once', async () => {
    const { come, connected } = setUp(20);
    const outcomes = await Promise.all(Array.from({ length: 50 }, () => come('one')));
    expect(outcomes.filter(Boolean)).toHaveLength(20);
    expect(connected).toHaveLength(20);
    expect(await come('one')).toBe(false);
    expect(await come('another')).toBe(true);
  });

  it('end without notice: then there is room again', async () => {
    const { come, connected } = setUp(3);
    for (let count = 0; count < 3; count += 1) expect(await come('one')).toBe(true);
    expect(await come('one')).toBe(false);
    connected.pop();
    expect(await come('one')).toBe(true);
    expect(await come('one')).toBe(false);
  });

  it('that another process has admitted count too', async () => {
    const { come, connected } = setUp(20);
    connected.push(...Array.from({ length: 15 }, () => 'one'));
    let count = 0;
    while (await come('one')) count += 1;
    // Eight are admitted before the servers are asked.
    expect(count).toBe(8);
  });

  it('are not listed while there are few', async () => {
    const { come, asked } = setUp(64);
    for (let count = 0; count < 8; count += 1) await come('one');
    expect(asked()).toBe(0);
  });

  it('are counted here if the servers do not answer', async () => {
    let isAway = true;
    const { take } = createKeyConnections({
      max: 2,
      list: () => (isAway ? Promise.reject(new Error('away')) : Promise.resolve(['one', 'one'])),
    });
    expect([await take('one'), await take('one')]).toEqual([true, true]);
    await expect(take('one')).rejects.toThrow('away');
    isAway = false;
    expect(await take('one')).toBe(false);
  });
});

describe('failed attempts', () => {
  function setUp() {
    let now = 0;
    const attempts = createFailedAttempts({ perAddressMax: 2, max: 5, now: () => now });
    return { attempts, pass: (ms: number) => void (now += ms) };
  }

  it('of one address are answered up to its bound, independently of other addresses', () => {
    const { attempts } = setUp();
    const outcomes = ['a', 'a', 'a', 'a', 'b'].map((address) => attempts.note(address));
    expect(outcomes).toEqual(['answer', 'answer', 'first-beyond', 'beyond', 'answer']);
  });

  it('of all addresses together are answered up to the common bound', () => {
    const { attempts } = setUp();
    const outcomes = ['a', 'b', 'c', 'd', 'e', 'f', 'g'].map((one) => attempts.note(one));
    expect(outcomes.slice(4)).toEqual(['answer', 'first-beyond', 'beyond']);
  });

  it('are forgotten after a minute', () => {
    const { attempts, pass } = setUp();
    for (const address of ['a', 'a', 'a', 'b', 'c', 'd']) attempts.note(address);
    pass(59_999);
    expect(attempts.note('a')).toBe('beyond');
    pass(1);
    expect(attempts.note('a')).toBe('answer');
  });
});
