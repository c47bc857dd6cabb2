import type { ImageFacts } from './facts.ts';
import { findingsOf, type Finding } from './finding.ts';

const DAY_MS = 86_400_000;
/** Chromium is mended about weekly, often for holes in use; by then a rebuild has had its time. */
const OLD_DAYS = 8;
const TOO_OLD_DAYS = 14;

/**
 * The finding about the browsers' image. Pure.
 * @param missing what to do where there is none
 */
export function checkImage(image: ImageFacts | null, missing: string): Finding[] {
  const { found, ok, warn, bad } = findingsOf('browsers');
  if (image === null) {
    warn('image', 'the browser image does not exist yet', missing);
    return found;
  }
  const { version, ageMs, isGiven } = image;
  const days = Math.floor(ageMs / DAY_MS);
  const what = `Chromium ${version}, ${days} days old`;
  const advice = isGiven
    ? 'name or pull a newer image in BROWSER_IMAGE; a running server notices it within a minute'
    : 'bss image build: running sessions go on, idle browsers are replaced';
  if (days >= TOO_OLD_DAYS) bad('image', what, advice);
  else if (days >= OLD_DAYS) warn('image', what, advice);
  else ok('image', what);
  return found;
}
