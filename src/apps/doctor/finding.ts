/** Result of one check: `what` is the fact, `advice` what to do about it (null: nothing). */
export type Finding = {
  /** `<part>.<check>`, as `log.replicas`; stable, for programs. */
  check: string;
  level: 'ok' | 'warn' | 'bad';
  what: string;
  advice: string | null;
};

/** Collects the findings of one part and prefixes their checks with its name. */
export function findingsOf(part: string) {
  const found: Finding[] = [];
  const add = (level: Finding['level'], check: string, what: string, advice: string | null) =>
    void found.push({ check: `${part}.${check}`, level, what, advice });
  return {
    found,
    ok: (check: string, what: string) => add('ok', check, what, null),
    warn: (check: string, what: string, advice: string) => add('warn', check, what, advice),
    bad: (check: string, what: string, advice: string) => add('bad', check, what, advice),
  };
}

export type Findings = ReturnType<typeof findingsOf>;
