import type { Option, Usage } from './command.ts';

const common: Readonly<Record<string, Option>> = {
  json: { meaning: 'print JSON, errors included' },
  help: { meaning: 'print this text' },
};

/** One line for each of the given commands. */
export function helpOnAll(commands: readonly Usage[]): string {
  const width = Math.max(...commands.map(({ name }) => name.length));
  return [
    'usage: bss COMMAND [OPTIONS]    (bss COMMAND --help lists the options)',
    '',
    ...commands.map(({ name, summary }) => `  bss ${name.padEnd(width)}  ${summary}`),
    '',
    'bss finds the service that runs on DATA_DIR (default .data), or at NATS_URL.',
    'Exit codes: 0 done, 1 refused or no service, 2 usage error.',
  ].join('\n');
}

export function helpOn(command: Usage): string {
  const { name, summary, operands = [], optionalOperand, repeatsLast, options } = command;
  const more = optionalOperand === undefined ? '' : ` [${optionalOperand}]`;
  const extra = repeatsLast === true ? `${more}…` : more;
  const names = operands.map((operand) => ` ${operand}`).join('') + extra;
  const lines = Object.entries({ ...options, ...common }).map(([option, facts]) => {
    const typed = facts.value === undefined ? `--${option}` : `--${option} ${facts.value}`;
    return `  ${typed.padEnd(18)}${facts.meaning}`;
  });
  return [`usage: bss ${name}${names} [OPTIONS]`, '', summary, '', ...lines].join('\n');
}
