import { readdirSync, readFileSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, test } from 'vitest';
import { NotALife, lifeText, parseLife, type Life } from '#src/apps/cli/commands/life/life.ts';
import { replay } from '#src/apps/cli/commands/life/replay.ts';
import { replayLife } from '#src/apps/cli/commands/life/replay-life.ts';
import type { Output } from '#src/apps/cli/command.ts';
import { readArguments } from '#src/apps/cli/read-arguments.ts';
import { usageOf } from '#src/apps/cli/usage/all.ts';
import type { RawRecord } from '#src/kernel/event-store/raw-records.ts';

/** Lives that a service recorded: test/faults/recorded-lives.long.test.ts. */
const FOLDER = new URL('lives/', import.meta.url);
const files = readdirSync(FOLDER);
const textOf = (file: string) => readFileSync(new URL(file, FOLDER), 'utf8');
const lifeOf = (file: string) => parseLife(textOf(file));

describe('a recorded life', () => {
  it('is there for every way in which a session with a simulated browser ends', () => {
    const reasons = files.map((file) => bodyOf(lastOfSession(lifeOf(file))).state['endedReason']);
    expect(new Set(reasons)).toEqual(
      new Set([
        ...['user', 'expired', 'idle', 'browser_closed'],
        ...['launch_failed', 'queue_timeout', 'browser_crashed', 'server_lost'],
      ]),
    );
  });

  test.each(files)('%s is folded by this build to the recorded states', (file) => {
    const { differences, unreadable, folded } = replayLife(lifeOf(file));
    expect({ differences, unreadable }).toEqual({ differences: [], unreadable: [] });
    expect(folded).toBe(lifeOf(file).records.length);
  });

  test.each(files)('%s has its session, its browsers and its credits', (file) => {
    const kinds = new Set(
      lifeOf(file).records.map(({ subject }) => (/session|workload|ledger/.exec(subject) ?? [])[0]),
    );
    const without = new Set(['queue-timeout.json']);
    const browsers = without.has(file) ? [] : ['workload'];
    expect(kinds).toEqual(new Set(['session', 'ledger', ...browsers]));
  });

  it('is read and written again with the same bytes', () => {
    for (const file of files) expect(lifeText(lifeOf(file))).toBe(textOf(file));
  });
});

describe('a replay', () => {
  const life = lifeOf('extended-and-accessed.json');

  it('names event and field where a recorded state differs from the folded one', () => {
    const record = find(life, 'extended');
    const altered = change(life, record, ({ state }) => (state['creditsReserved'] = 1));
    const [difference] = replayLife(altered).differences;
    const recorded = bodyOf(record).state['creditsReserved'];
    expect(recorded).toBeGreaterThan(1);
    expect(difference).toEqual({
      sequence: record.sequence,
      type: 'session.extended',
      ...{ path: 'creditsReserved', recorded: 1, folded: recorded },
    });
  });

  it.each(['activated', 'slot-released', 'terminated'])(
    'notices a field of the state after %s that the fold does not give',
    (event) => {
      const record = find(life, event);
      const altered = change(life, record, ({ state }) => Object.assign(state, { more: [1] }));
      const expected = { sequence: record.sequence, path: 'more', recorded: [1] };
      expect(replayLife(altered).differences[0]).toMatchObject(expected);
    },
  );

  it('folds, and does not compare, states of another version', () => {
    const { sequence } = find(life, 'extended');
    const older = {
      ...life,
      records: life.records.map((record) =>
        record.subject.includes('.session.')
          ? altered(record, (body) =>
              Object.assign(body, { stateVersion: 0, state: { old: true } }),
            )
          : record,
      ),
    };
    const own = life.records.filter(({ subject }) => subject.includes('.session.'));
    const { folded, compared, differences, unreadable } = replayLife(older);
    expect({ differences, unreadable }).toEqual({ differences: [], unreadable: [] });
    expect([folded, compared]).toEqual([life.records.length, life.records.length - own.length]);
    const newest = own.at(-1);
    const mixed = {
      ...older,
      records: older.records.map((record) =>
        record.sequence === newest?.sequence ? newest : record,
      ),
    };
    expect(replayLife(mixed)).toMatchObject({ differences: [], compared: compared + 1 });
    expect(sequence).toBeLessThan(newest?.sequence ?? 0);
  });

  it('reports an event that it cannot decode, and compares the others', () => {
    const record = find(life, 'activated');
    const broken = change(life, record, (body) => Object.assign(body, { data: {} }));
    const { unreadable, differences } = replayLife(broken);
    expect(unreadable).toEqual([
      {
        sequence: record.sequence,
        subject: record.subject,
        reason: expect.stringContaining('data of session.activated'),
      },
    ]);
    expect(differences).toEqual([]);
  });

  it('notices that an event is missing', () => {
    const { sequence } = find(life, 'activated');
    const records = life.records.filter((record) => record.sequence !== sequence);
    expect(replayLife({ ...life, records }).differences.length).toBeGreaterThan(0);
  });
});

describe('bss replay', () => {
  it('ends with a verdict over all files, and differs if one of them does', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'bss-replay-'));
    try {
      const life = lifeOf('idle.json');
      const stopped = find(life, 'stopped');
      const edit = ({ state }: Body) => (state['endedReason'] = 'user');
      const changed = change(life, stopped, edit);
      await writeFile(join(folder, 'changed.json'), lifeText(changed));
      await writeFile(join(folder, 'whole.json'), textOf('idle.json'));
      const whole = await run(join(folder, 'whole.json'));
      expect([whole.differs, whole.text]).toEqual([false, expect.stringMatching(/^ok /)]);
      const both = await run(folder);
      expect([both.differs, both.json]).toEqual([true, expect.objectContaining({ agrees: false })]);
      expect(both.text).toMatch(/session\.stopped: endedReason: recorded "user", folded "idle"/);
      expect(both.text).toMatch(/1 of 2 lives are as recorded$/);
      await writeFile(join(folder, 'other.json'), '{"format":"other"}');
      expect((await run(join(folder, 'other.json'), join(folder, 'whole.json'))).text).toMatch(
        /^UNREADABLE .*other\.json: it is not of the format .*\nok /,
      );
      await expect(run(join(folder, 'none.json'))).rejects.toThrow('cannot be read');
    } finally {
      await rm(folder, { recursive: true });
    }
  });

  it.each(['', '[]', '{}', '{"format":"bss-life-1","records":[]}'])('refuses %j', (text) => {
    expect(() => parseLife(text)).toThrow(NotALife);
  });
});

async function run(...paths: string[]): Promise<Output> {
  const result = await replay.readAlone?.(readArguments(usageOf('replay'), paths))?.();
  return result as Output;
}

type Body = { data: object; state: Record<string, unknown> };

function bodyOf({ body }: RawRecord): Body {
  return JSON.parse(body) as Body;
}

function lastOfSession({ records }: Life): RawRecord {
  const last = records.findLast(({ subject }) => subject.includes('.session.'));
  if (last === undefined) throw new Error('it has no event of its session');
  return last;
}

function find({ records }: Life, event: string): RawRecord {
  const found = records.find(({ subject }) => subject.endsWith(`.${event}`));
  if (found === undefined) throw new Error(`there is no ${event}`);
  return found;
}

function altered(record: RawRecord, edit: (body: Body) => unknown): RawRecord {
  const body = bodyOf(record);
  edit(body);
  return { ...record, body: JSON.stringify(body) };
}

function change(life: Life, which: RawRecord, edit: (body: Body) => unknown): Life {
  const records = life.records.map((one) =>
    one.sequence === which.sequence ? altered(one, edit) : one,
  );
  return { ...life, records };
}
