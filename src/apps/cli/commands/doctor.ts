import { BadConfig } from '#src/kernel/config/parse.ts';
import { readConfig } from '#src/kernel/config/config.ts';
import type { Finding } from '#src/apps/doctor/finding.ts';
import { check } from '#src/apps/doctor/check.ts';
import type { Command, Output } from '../command.ts';

export const runDoctor: Command = {
  readAlone: (options) => () => run(options.has('fix')),
  read: () => {
    throw new Error('the doctor needs no service');
  },
};

async function run(fixes: boolean): Promise<Output> {
  const findings = await findingsFor(fixes);
  const worst = (['bad', 'warn'] as const).find((level) =>
    findings.some((finding) => finding.level === level),
  );
  const count = (level: Finding['level']) => findings.filter((one) => one.level === level).length;
  const end = `${count('bad')} bad, ${count('warn')} warnings, ${count('ok')} ok`;
  return {
    json: { status: worst ?? 'ok', findings },
    text: [...findings.flatMap(linesOf), '', end].join('\n'),
    differs: worst === 'bad',
  };
}

async function findingsFor(fixes: boolean): Promise<readonly Finding[]> {
  // Imported here only: the Docker client would double the start time of every command.
  const { fixLog, gatherFacts } = await import('#src/apps/doctor/compose.ts');
  try {
    const config = readConfig(process.env);
    if (fixes) await fixLog(config);
    return check(await gatherFacts(config, process.env), Date.now());
  } catch (error) {
    if (!(error instanceof BadConfig)) throw error;
    const advice = 'correct the variable; npm start -- --help lists all variables';
    return [{ check: 'configuration', level: 'bad', what: error.message, advice }];
  }
}

const MARKS = { ok: 'ok  ', warn: 'WARN', bad: 'BAD ' };

function linesOf({ check, level, what, advice }: Finding): string[] {
  const line = `${MARKS[level]}  ${check.padEnd(22)}  ${what}`;
  return advice === null ? [line] : [line, `${' '.repeat(30)}→ ${advice}`];
}
