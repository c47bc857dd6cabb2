import { expect, test } from 'vitest';
import { withoutCounted } from '#src/browsers/docker/rules.ts';

/** As nft prints it. */
const listing = (elements: string) => `table inet bss_1 {
\tset unreachable {
\t\ttype ipv4_addr
\t\telements = { 0.0.0.0/8 }
\t}

\tset counted {
\t\ttype ipv4_addr
\t\tsize 65535
\t\tflags dynamic
${elements}\t}

\tchain from_sessions {
\t\tadd @counted { ip saddr ct count over 1024 } jump full
\t}
}
`;

test('rules whose sessions have opened connections since count as unchanged', () => {
  const over = (last: number) => `10.1.1.${last} ct count over 1024`;
  const later = listing(`\t\telements = { ${over(1)}, ${over(2)},\n\t\t\t     ${over(3)} }\n`);
  expect(later).not.toBe(listing(''));
  expect(withoutCounted(later)).toBe(withoutCounted(listing('')));
});

test('rules without one of their lines count as changed', () => {
  const changed = listing('').replace(/\t\tadd @counted.*\n/, '');
  expect(withoutCounted(changed)).not.toBe(withoutCounted(listing('')));
});
