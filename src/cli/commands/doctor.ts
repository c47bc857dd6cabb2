import { BadConfig } from '#src/config/parse.ts';
import { readConfig } from '#src/config/config.ts';
import type { Finding } from '#src/doctor/finding.ts';
import { judge } from '#src/doctor/check.ts';
import type { Command, Output } from '../command.ts';

export const examine: Command = {
  name: 'doctor',
  summary: 'Examine this installation, and say what to do about each finding; 1 where one is bad',
  options: {
    fix: { meaning: 'put right the log’s settings first: streams, and the copies of each' },
  },
  readAlone: (given) => () => run(given.has('fix')),
  read: () => {
    throw new Error('the doctor needs no service');
  },
};

async function run(fixes: boolean): Promise<Output> {
  const findings = await examined(fixes);
  const worst = (['bad', 'warn'] as const).find((level) =>
    findings.some((finding) => finding.level === level),
  );
  const count = (level: Finding['level']) => findings.filter((one) => one.level === level).length;
  const end = `${count('bad')} bad, ${count('warn')} to mind, ${count('ok')} fine`;
  return {
    json: { status: worst ?? 'ok', findings },
    text: [...findings.flatMap(linesOf), '', end].join('\n'),
    differs: worst === 'bad',
  };
}

async function examined(fixes: boolean): Promise<readonly Finding[]> {
  // The engine's client is loaded only by who needs it: it would double every command's start.
  const { fixLog, gatherFacts } = await import('#src/bootstrap/doctor.ts');
  try {
    const config = readConfig(process.env);
    if (fixes) await fixLog(config);
    return judge(await gatherFacts(config, process.env));
  } catch (error) {
    if (!(error instanceof BadConfig)) throw error;
    const advice = 'correct it; npm start -- --help lists all variables';
    return [{ check: 'configuration', level: 'bad', what: error.message, advice }];
  }
}

const MARKS = { ok: 'ok  ', warn: 'mind', bad: 'BAD ' };

function linesOf({ check, level, what, advice }: Finding): string[] {
  const line = `${MARKS[level]}  ${check.padEnd(22)}  ${what}`;
  return advice === null ? [line] : [line, `${' '.repeat(30)}→ ${advice}`];
}
