// Small parts that many views have: problems, empty states, times, busy lines.
import { html } from '../vendor/preact.js';
import { shown } from './times.js';

/** A refusal of the server: {title, detail, code, place, hint, notes, diagnostics}. */
export function Problem({ problem, retry }) {
  if (!problem) return null;
  const all = problem.diagnostics?.length ? problem.diagnostics : [{ ...problem, message: problem.detail }];
  return html`<div class="problem" role="alert">
    ${all.map((one) => html`<p class="said">${one.message ?? problem.title}</p>
      ${one.place && html`<p class="more"><code>${one.place}</code></p>`}
      ${(one.notes ?? []).map((note) => html`<p class="more">${note}</p>`)}
      ${one.hint && html`<p class="more"><strong>Try</strong> ${one.hint}</p>`}
      ${one.code && html`<p class="more code">${one.code}</p>`}`)}
    ${retry && html`<button type="button" onClick=${retry}>Try again</button>`}
  </div>`;
}

/** What to do where nothing is. */
export function Empty({ title, children }) {
  return html`<div class="empty"><p class="title">${title}</p>${children}</div>`;
}

/** A time of the data; `coarse`: to the second. */
export function Time({ time, coarse }) {
  const { date, clock } = shown(coarse && typeof time === 'string' ? time.replace(/\.\d+/, '') : time);
  return html`<time class="time" title=${time ?? ''}>${date && html`<span class="date">${date} </span>`}${clock}</time>`;
}

/** That something is on its way. */
export const Busy = ({ what = 'Loading' }) => html`<p class="busy" role="status">${what}…</p>`;

/** A button that copies a string. */
export function Copy({ text, what }) {
  const copy = async (event) => {
    const button = event.currentTarget;
    await navigator.clipboard?.writeText(text).catch(() => undefined);
    button.dataset.done = 'yes';
    setTimeout(() => delete button.dataset.done, 1200);
  };
  return html`<button type="button" class="quiet copy" onClick=${copy} aria-label=${`Copy ${what}`}>Copy</button>`;
}
