/** Limits of commands that their help names. */

/** Rows that `bss sql` prints without `--limit`. */
export const SQL_ROWS = 1_000;

/**
 * Days that `bss pool simulate` takes at most. The pool is evaluated once a second: 31 days take
 * some ten seconds.
 */
export const POOL_DAYS_MAX = 31;
