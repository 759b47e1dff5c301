// Events by rule along time: a lane for each rule, bars of how many there are in a bucket of time.
// It is a slider: arrows move a time along it, + and - zoom, and a drag chooses what is shown.
import { html, useEffect, useRef, useState } from '../vendor/preact.js';
import { asNumber, asText, count, counted, length, line, ticks } from './times.js';

const LANE = 30;
const AXIS = 26;
const MOST_SHOWN = 8;
const CLICK = 4;

/** The counts of a rule, whatever it is called; `of`: `rules`, or `taken_back`. */
const ofRule = (counts, name, of = 'rules') => (Object.hasOwn(counts[of] ?? {}, name) ? counts[of][name] : []);

/** The numbers of what `/v1/events/counts` answers: where it begins and ends, and how long a bucket is. */
export function scale(counts) {
  const begin = asNumber(counts.since);
  const integer = typeof counts.since === 'number';
  const width = integer ? counts.width : counts.width * 1e6;
  return { begin, end: begin + width * counts.buckets, width, integer };
}

/**
 * `lanes`: [{name, colour}]; `counts`: as the server has them; `cursor`: a time as a number, or null.
 * `onCursor(number)`, `onRange(begin, end)`, `onZoom(factor, around)`, `onOpen()` (Enter).
 */
export function Timeline({ lanes, counts, cursor, onCursor, onRange, onZoom, onOpen }) {
  const box = useRef(null);
  const [wide, setWide] = useState(800);
  const [drag, setDrag] = useState(null);
  useEffect(() => {
    const sized = new ResizeObserver(([one]) => setWide(one.contentRect.width));
    sized.observe(box.current);
    return () => sized.disconnect();
  }, []);

  const narrow = wide < 560;
  const left = narrow ? 0 : Math.min(180, wide * 0.22);
  const lane = narrow ? LANE + 10 : LANE;
  const { begin, end, width, integer } = scale(counts);
  const inner = Math.max(50, wide - left - 1);
  const x = (at) => left + ((at - begin) / (end - begin)) * inner;
  const timeAt = (px) => Math.min(end, Math.max(begin, begin + ((px - left) / inner) * (end - begin)));
  const high = lanes.length * lane;
  const bucketOf = (at) => Math.min(counts.buckets - 1, Math.max(0, Math.floor((at - begin) / width)));
  const at = cursor === null ? null : bucketOf(cursor);
  const inBucket = (n) => lanes.reduce((sum, one) =>
    sum + ((ofRule(counts, one.name)).find(([bucket]) => bucket === n)?.[1] ?? 0), 0);

  const place = (event) => event.clientX - box.current.getBoundingClientRect().left;
  const down = (event) => {
    if (event.button !== 0) return;
    event.currentTarget.setPointerCapture(event.pointerId);
    setDrag({ from: place(event), to: place(event) });
  };
  const move = (event) => { if (drag) setDrag({ ...drag, to: place(event) }); };
  const up = () => {
    if (!drag) return;
    const [from, to] = [Math.min(drag.from, drag.to), Math.max(drag.from, drag.to)];
    setDrag(null);
    if (to - from > CLICK) onRange(timeAt(from), timeAt(to));
    else onCursor(timeAt(to));
  };
  const onWheel = (event) => {
    if (!event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    onZoom(event.deltaY > 0 ? 1.25 : 0.8, timeAt(place(event)));
  };
  useEffect(() => {
    const element = box.current;
    element.addEventListener('wheel', onWheel, { passive: false });
    return () => element.removeEventListener('wheel', onWheel);
  });

  const onKeyDown = (event) => {
    if (event.altKey || event.metaKey || (event.ctrlKey && event.key !== 'Home')) return;
    const now = at ?? counts.buckets - 1;
    const steps = { ArrowLeft: -1, ArrowRight: 1, ArrowDown: -1, ArrowUp: 1, PageUp: 10, PageDown: -10 };
    const centre = (n) => begin + (n + 0.5) * width;
    if (event.key in steps) onCursor(centre(Math.min(counts.buckets - 1, Math.max(0, now + steps[event.key] * (event.shiftKey ? 10 : 1)))));
    else if (event.key === 'Home') onCursor(centre(0));
    else if (event.key === 'End') onCursor(centre(counts.buckets - 1));
    else if (event.key === '+' || event.key === '=') onZoom(0.5, centre(now));
    else if (event.key === '-') onZoom(2, centre(now));
    else if (event.key === 'Enter' && at !== null) onOpen();
    else return;
    event.preventDefault();
  };

  const said = at === null ? 'no time is chosen'
    : `${line(asText(begin + at * width, integer))}, ${counted(inBucket(at), 'event')} in ${length(width, integer)}`;
  return html`<div class="timeline" ref=${box}>
    <div class="lanes" style=${{ maxHeight: `${MOST_SHOWN * lane + 8}px` }}>
      <svg width=${wide} height=${high} role="slider" tabindex="0" aria-label="Timeline" aria-valuemin="0"
        aria-valuemax=${counts.buckets - 1} aria-valuenow=${at ?? 0} aria-valuetext=${said} onKeyDown=${onKeyDown}
        onPointerDown=${down} onPointerMove=${move} onPointerUp=${up} onPointerCancel=${() => setDrag(null)}>
        ${ticks(begin, end, inner / 110, integer).map((tick) => html`<line class="grid" x1=${x(tick.at)} x2=${x(tick.at)} y1="0" y2=${high} />`)}
        ${lanes.map((one, n) => html`<${Lane} ...${{ one, top: n * lane, lane, left, inner, narrow, counts }} />`)}
        ${at !== null && html`<rect class="cursor" x=${x(begin + at * width)} width=${Math.max(2, x(begin + width) - x(begin))} y="0" height=${high} />`}
        ${drag && Math.abs(drag.to - drag.from) > CLICK && html`<rect class="brush" y="0" height=${high}
          x=${Math.min(drag.from, drag.to)} width=${Math.abs(drag.to - drag.from)} />`}
      </svg>
    </div>
    <svg class="axis" width=${wide} height=${AXIS} aria-hidden="true">
      ${ticks(begin, end, inner / 110, integer).filter((tick) => x(tick.at) < wide - 24).map((tick) => html`<text x=${Math.max(x(tick.at), left + 18)} y="17" text-anchor="middle">${tick.text}</text>`)}
    </svg>
  </div>`;
}

function Lane({ one, top, lane, left, inner, narrow, counts }) {
  const found = ofRule(counts, one.name);
  const most = found.reduce((high, [, n]) => Math.max(high, n), 1);
  const taken = ofRule(counts, one.name, 'taken_back');
  const sum = found.reduce((total, [, n]) => total + n, 0);
  const bar = inner / counts.buckets;
  const high = narrow ? lane - 21 : lane - 10;
  const base = top + lane - 4;
  // the square root: one event beside a thousand is still seen
  const size = (n) => Math.min(high, Math.max(4, high * Math.sqrt(n / most)));
  const name = one.name.length > 20 ? `${one.name.slice(0, 19)}…` : one.name;
  return html`<g class=${`lane ${one.colour}`}>
    <line class="base" x1=${left} x2=${left + inner} y1=${base + 0.5} y2=${base + 0.5} />
    ${narrow ? html`<text class="label" x="0" y=${top + 13}>${name} <tspan class="sum">${count(sum)}</tspan></text>`
    : html`<text class="label" x="0" y=${base - 6}>${name}</text><text class="sum" x=${left - 12} y=${base - 6} text-anchor="end">${count(sum)}</text>`}
    ${found.map(([bucket, n]) => html`<rect class="bar" x=${left + bucket * bar} width=${Math.max(1.5, bar - (bar > 4 ? 1 : 0))} y=${base - size(n)} height=${size(n)} rx=${bar > 4 ? 1 : 0}><title>${one.name}: ${count(n)}</title></rect>`)}
    ${taken.map(([bucket, n]) => html`<rect class="bar taken" x=${left + (bucket + 0.5) * bar} width=${Math.max(1.5, bar / 2 - 1)} y=${base - size(n) + 0.5} height=${size(n) - 1}><title>${one.name}: ${count(n)} taken back</title></rect>`)}
  </g>`;
}
