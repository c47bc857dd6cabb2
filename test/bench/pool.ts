import { policies, POLICY } from '#src/kernel/domain/fleet/pool-policy.ts';
import { simulatePool } from '#src/kernel/domain/fleet/simulate-pool.ts';
import { poolTraces } from '#test/support/load/pool-traces.ts';
import { atLeast, atMost, type Verdict } from './samples.ts';

const WIDTH = 38;

/**
 * Runs each trace through each version of the pool policy, in simulated time. Goals are those of
 * the newest version; a trace without goals is shown only.
 */
export function benchPool(print: (line?: string) => void): Verdict[] {
  const verdicts: Verdict[] = [];
  const heads = ['creates', 'warm %', 'wait p50', 'p95 ms', 'idle', 'in use', 'ratio'];
  print(`${'requests'.padEnd(WIDTH)}policy${heads.map((head) => head.padStart(10)).join('')}`);
  for (const { goals, ...trace } of poolTraces())
    for (const policy of policies) {
      const { creates, warm, waitP50Ms, waitP95Ms, meanIdle, meanInUse } = simulatePool({
        ...trace,
        policy,
      });
      const [share, idle] = [warm / creates, meanIdle / meanInUse];
      const cells = [
        String(creates),
        (100 * share).toFixed(1),
        ...[waitP50Ms, waitP95Ms].map((ms) => ms.toFixed(0)),
        ...[meanIdle, meanInUse, idle].map((mean) => mean.toFixed(2)),
      ];
      const name = trace.name.padEnd(WIDTH);
      print(
        `${name}${String(policy).padStart(6)}${cells.map((cell) => cell.padStart(10)).join('')}`,
      );
      if (policy === POLICY && goals !== null)
        verdicts.push(
          atLeast(`${trace.name}: warm`, share, goals.warm),
          atMost(`${trace.name}: idle ÷ in use`, idle, goals.idle),
        );
    }
  return verdicts;
}
