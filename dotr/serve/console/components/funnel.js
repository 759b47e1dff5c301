// How far trigger facts of a rule came: a bar for each conjunct, as long as what passed it; of a sequence: its rows, what
// its elements refused, starts, matches.
import { html } from '../vendor/preact.js';
import { count } from './times.js';

const isPassed = ([name]) => !name.startsWith('ON not true: ');

/** `stages`: [[name, how many passed]], the trigger first; `events`: what came of them. */
export function Funnel({ stages, events, colour = '' }) {
  const rows = stages.at(-1)?.[0] === 'matches' ? stages : [...stages, ['events', events]];
  const most = Math.max(1, ...rows.map(([, n]) => n));
  return html`<table class=${`funnel ${colour}`}><tbody>${rows.map(([name, n], place) => {
    const before = place ? rows.slice(0, place).filter(isPassed).at(-1)[1] : null;
    // EACH gives several matches for one: that is no part
    const kept = !before ? '' : n > before ? ` (× ${Math.round((n / before) * 10) / 10})` : ` (${Math.round((n / before) * 100)} %)`;
    return html`<tr><th scope="row">${name}</th>
      <td class="bar"><svg width="100%" height="14" aria-hidden="true"><rect class="rest" width="100%" height="14" rx="3" />
        <rect class="own" width=${`${(n / most) * 100}%`} height="14" rx="3" /></svg></td>
      <td class="number">${count(n)}<span class="muted">${kept}</span></td></tr>`;
  })}</tbody></table>`;
}
