import { LOOKS } from '#test/support/dashboard/dashboard.ts';
import { soakOr } from '#test/support/soak.ts';

/** CI has each theme and each width once: light on a phone, dark on a wide screen. */
const EACH_ONCE = LOOKS.filter(({ theme, width }) => (theme === 'light') === (width === 390));

/** What the pages of these tests are looked at in: `it.each(looks)('%s', (look) => …)`. */
export const looks = soakOr(LOOKS, EACH_ONCE);
