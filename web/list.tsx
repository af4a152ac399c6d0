/** A list of which only what can be seen is drawn, so that ten thousand entries scroll like ten. */
import { elementScroll, observeElementOffset, observeElementRect, Virtualizer } from "@tanstack/virtual-core";
import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";

interface ListProps {
  readonly count: number;
  readonly keyOf: (index: number) => string;
  readonly draw: (index: number) => ComponentChildren;
  /** Stay at the end while it grows, unless the person scrolled up. */
  readonly follow: boolean;
  readonly label: string;
}

export function VirtualList({ count, keyOf, draw, follow, label }: ListProps) {
  const scroller = useRef<HTMLDivElement>(null);
  const [, redraw] = useState(0);
  const atEnd = useRef(true);
  const kept = useRef<Virtualizer<HTMLDivElement, HTMLDivElement> | null>(null);
  const options = {
    count,
    getScrollElement: () => scroller.current,
    estimateSize: () => 120,
    getItemKey: keyOf,
    overscan: 6,
    scrollToFn: elementScroll,
    observeElementRect,
    observeElementOffset,
    onChange: () => redraw((value) => value + 1),
  };
  const list = (kept.current ??= new Virtualizer<HTMLDivElement, HTMLDivElement>(options));
  list.setOptions(options);
  useLayoutEffect(() => list._didMount(), []);
  useLayoutEffect(() => {
    list._willUpdate();
    if (follow && atEnd.current && count > 0) list.scrollToIndex(count - 1, { align: "end" });
  });
  const onScroll = () => {
    const box = scroller.current;
    if (box !== null) atEnd.current = box.scrollHeight - box.scrollTop - box.clientHeight < 80;
  };
  return (
    <div class="scroller" ref={scroller} onScroll={onScroll} tabIndex={0} role="log" aria-label={label}>
      <div class="sizer" style={{ height: `${list.getTotalSize()}px` }}>
        {list.getVirtualItems().map(({ key, index, start }) => (
          <div
            key={key}
            data-index={index}
            ref={(node) => list.measureElement(node)}
            class="row"
            style={{ transform: `translateY(${start}px)` }}
          >
            {draw(index)}
          </div>
        ))}
      </div>
    </div>
  );
}
