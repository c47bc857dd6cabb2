import { computed } from '@preact/signals';
import { momentOf, textOf, type Moment } from './moment-text.ts';
import { query, setParameter } from './router.ts';

/** The moment of `?at=`, which the page shows; null: now. */
export const moment = computed(() => momentOf(query.value.get('at')));

export function setMoment(to: Moment | null): void {
  setParameter('at', to === null ? null : textOf(to));
}
