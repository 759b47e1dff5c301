// A list of any length of which only what is seen is drawn: rows of one height, moved through by arrow keys.
import { html, useEffect, useLayoutEffect, useRef, useState } from '../vendor/preact.js';

const SPARE = 8;

/**
 * `count` rows of `height` px; `row(n)` draws one and `id(n)` names it. `prepended` counts rows that came at
 * the top: who reads further down stays where they are. `onEnd` is called near the bottom.
 */
export function List({ count, height, row, id, selected, onSelect, onEnd, prepended = 0, label, foot }) {
  const box = useRef(null);
  const [view, setView] = useState({ top: 0, size: 600 });
  const before = useRef(prepended);
  const chosen = useRef(selected); // also before it is drawn: the next key begins there
  useLayoutEffect(() => { chosen.current = selected; }, [selected]);

  useEffect(() => {
    const element = box.current;
    const look = () => setView({ top: element.scrollTop, size: element.clientHeight });
    const sized = new ResizeObserver(look);
    sized.observe(element);
    element.addEventListener('scroll', look, { passive: true });
    return () => { sized.disconnect(); element.removeEventListener('scroll', look); };
  }, []);

  useLayoutEffect(() => {
    const added = prepended - before.current;
    before.current = prepended;
    if (added > 0 && box.current.scrollTop > height / 2) box.current.scrollTop += added * height;
  }, [prepended, height]);

  const first = Math.max(0, Math.floor(view.top / height) - SPARE);
  const last = Math.min(count, Math.ceil((view.top + view.size) / height) + SPARE);
  useEffect(() => { if (onEnd && last >= count - SPARE) onEnd(); }, [last, count]);

  const show = (n) => {
    const element = box.current;
    const top = n * height;
    if (top < element.scrollTop) element.scrollTop = top;
    else if (top + height > element.scrollTop + element.clientHeight) element.scrollTop = top + height - element.clientHeight;
  };
  const page = Math.max(1, Math.floor(view.size / height) - 1);
  const moves = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -count, End: count };
  const onKeyDown = (event) => {
    const move = moves[event.key];
    if (move === undefined || event.altKey || event.ctrlKey || event.metaKey || !count) return;
    event.preventDefault();
    const from = chosen.current;
    const to = Math.min(count - 1, Math.max(0, (from < 0 ? (move > 0 ? -1 : 0) : from) + move));
    chosen.current = to;
    onSelect(to);
    show(to);
  };
  const rows = [];
  for (let n = first; n < last; n += 1) {
    rows.push(html`<div key=${id(n)} id=${id(n)} role="option" aria-selected=${n === selected} aria-setsize=${count}
      aria-posinset=${n + 1} class="row" style=${{ transform: `translateY(${n * height}px)`, height: `${height}px` }}
      onClick=${() => onSelect(n)}>${row(n)}</div>`);
  }
  return html`<div class="list" ref=${box}>
    <div role="listbox" tabindex="0" aria-label=${label} onKeyDown=${onKeyDown}
      aria-activedescendant=${selected >= first && selected < last ? id(selected) : undefined}
      style=${{ height: `${count * height}px` }} class="rows">${rows}</div>${foot}</div>`;
}
