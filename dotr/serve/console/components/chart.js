// Lines along time: rates, latencies.
import { html, useEffect, useRef, useState } from '../vendor/preact.js';

const HIGH = 150;
const LEFT = 52;
const BELOW = 22;

/** `times`: seconds since 1970; `series`: [{name, colour, values}] with null for a gap; `show(value)` writes one. */
export function Chart({ title, times, series, show }) {
  const box = useRef(null);
  const [wide, setWide] = useState(500);
  const [at, setAt] = useState(null);
  useEffect(() => {
    const sized = new ResizeObserver(([one]) => setWide(one.contentRect.width));
    sized.observe(box.current);
    return () => sized.disconnect();
  }, []);
  const all = series.flatMap((one) => one.values).filter((value) => value !== null);
  const top = round(Math.max(...all, 0)) || 1;
  const begin = times[0] ?? 0;
  const end = Math.max(times[times.length - 1] ?? 1, begin + 60);
  const x = (time) => LEFT + ((time - begin) / (end - begin)) * (wide - LEFT - 6);
  const y = (value) => 6 + (1 - value / top) * (HIGH - BELOW - 6);
  const last = at ?? times.length - 1;
  const move = (event) => {
    const time = begin + ((event.clientX - box.current.getBoundingClientRect().left - LEFT) / (wide - LEFT - 6)) * (end - begin);
    let best = 0;
    times.forEach((one, n) => { if (Math.abs(one - time) < Math.abs(times[best] - time)) best = n; });
    setAt(times.length ? best : null);
  };
  const onKeyDown = (event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!step || !times.length) return;
    event.preventDefault();
    setAt(Math.min(times.length - 1, Math.max(0, last + step)));
  };
  const clock = (time) => new Date(time * 1000).toISOString().slice(11, 19);
  const said = series.map((one) => `${one.name} ${one.values[last] === null || one.values[last] === undefined ? 'none' : show(one.values[last])}`);
  return html`<figure class="chart card">
    <figcaption><h2>${title}</h2><span class="legend">${series.map((one, n) => html`<span class=${one.colour}><span class="dot" /> ${said[n]}</span>`)}
      ${at !== null && html`<span class="muted">${clock(times[at])}</span>`}</span></figcaption>
    <div ref=${box}><svg width=${wide} height=${HIGH} role="img" aria-label=${`${title}: ${said.join(', ')}`} tabindex="0" onKeyDown=${onKeyDown} onBlur=${() => setAt(null)} onPointerMove=${move} onPointerLeave=${() => setAt(null)}>
      ${[0, 0.5, 1].map((part) => html`<g><line class="grid" x1=${LEFT} x2=${wide} y1=${y(top * part)} y2=${y(top * part)} />
        <text x=${LEFT - 8} y=${y(top * part) + 4} text-anchor="end">${show(top * part)}</text></g>`)}
      ${times.length > 0 && html`<text x=${LEFT} y=${HIGH - 4}>${clock(begin)}</text><text x=${wide - 6} y=${HIGH - 4} text-anchor="end">${clock(end)}</text>`}
      ${series.map((one) => html`<path class=${`line ${one.colour}`} d=${path(times, one.values, x, y)} />
        <path class=${`points ${one.colour}`} d=${points(times, one.values, x, y)} />`)}
      ${at !== null && html`<line class="at" x1=${x(times[at])} x2=${x(times[at])} y1="6" y2=${HIGH - BELOW} />`}
    </svg></div></figure>`;
}

function path(times, values, x, y) {
  let found = '';
  let on = false;
  values.forEach((value, n) => {
    if (value === null) { on = false; return; }
    const here = `${x(times[n]).toFixed(1)} ${y(value).toFixed(1)}`;
    found += on ? `L${here}` : `M${here}`;
    on = true;
  });
  return found;
}

/** Values between two gaps, which are no line. */
const points = (times, values, x, y) => values.map((value, n) => (value !== null && (values[n - 1] ?? null) === null && (values[n + 1] ?? null) === null
  ? `M${x(times[n]).toFixed(1)} ${y(value).toFixed(1)}h0.01` : '')).join('');

/** A round number, at least so great. */
function round(value) {
  if (value <= 0) return 0;
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 4, 5, 10].map((one) => one * power).find((one) => one >= value);
}
