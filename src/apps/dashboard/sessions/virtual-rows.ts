import {
  elementScroll,
  observeElementOffset,
  observeElementRect,
  Virtualizer,
} from '@tanstack/virtual-core';
import type { RefObject } from 'preact';
import { useEffect, useLayoutEffect, useState } from 'preact/hooks';

/** The rows of a scrolled list that are in view, each of the same height. */
export function useVirtualRows(
  scroller: RefObject<HTMLElement | null>,
  count: number,
  height: number,
): Virtualizer<HTMLElement, Element> {
  const [, show] = useState(0);
  const options = {
    count,
    getScrollElement: () => scroller.current,
    estimateSize: () => height,
    overscan: 6,
    scrollToFn: elementScroll,
    observeElementRect,
    observeElementOffset,
    onChange: () => show((times) => times + 1),
  };
  const [virtualizer] = useState(() => new Virtualizer<HTMLElement, Element>(options));
  virtualizer.setOptions(options);
  // What a framework's adapter calls; the package names them so.
  // oxlint-disable-next-line no-underscore-dangle
  useEffect(() => virtualizer._didMount(), [virtualizer]);
  // oxlint-disable-next-line no-underscore-dangle
  useLayoutEffect(() => virtualizer._willUpdate());
  useLayoutEffect(() => virtualizer.measure(), [virtualizer, height]);
  return virtualizer;
}
