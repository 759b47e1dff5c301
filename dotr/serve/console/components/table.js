// Answers of queries as a table, and what holds as a table by subject.
import { html, useMemo, useState } from '../vendor/preact.js';
import { Term, text } from './terms.js';
import { count } from './times.js';

const SHOWN = 200;

/** Rows of a SELECT: `variables`, and `rows` as objects of terms. */
export function Answers({ variables, rows, prefixes }) {
  const [most, setMost] = useState(SHOWN);
  return html`<div class="scroll" tabindex="0" role="region" aria-label="Answers"><table class="answers"><thead><tr>${variables.map((name) => html`<th scope="col">${name}</th>`)}</tr></thead>
    <tbody>${rows.slice(0, most).map((row) => html`<tr>${variables.map((name) => html`<td>${row[name] && html`<${Term} term=${row[name]} prefixes=${prefixes} cell />`}</td>`)}</tr>`)}</tbody></table></div>
    ${rows.length > most && html`<button type="button" onClick=${() => setMost(most * 5)}>Show more of ${count(rows.length)} rows</button>`}`;
}

const TERM = '(<[^>]*>|_:\\S+|"(?:[^"\\\\]|\\\\.)*"(?:\\^\\^<[^>]*>|@[A-Za-z0-9-]+)?|<<.*?>>)';
const QUAD = new RegExp(`^${TERM}\\s+(<[^>]*>)\\s+${TERM}\\s*(<[^>]*>)?\\s*\\.$`);

/** N-Quads as [{subject, predicate, object, derived}]. */
export function quads(written) {
  return written.split('\n').map((line) => QUAD.exec(line.trim())).filter(Boolean)
    .map(([, subject, predicate, object, graph]) => ({ subject, predicate, object, derived: graph === '<urn:dotr:derived>' }));
}

/** What holds, a row for each subject and predicate. `found`: as `quads` makes it; `sought`: a string. */
export function Facts({ found, prefixes, sought = '' }) {
  const [most, setMost] = useState(SHOWN);
  const subjects = useMemo(() => {
    const wanted = sought.toLowerCase();
    const grouped = new Map();
    for (const one of found) {
      const words = [one.subject, one.predicate, one.object];
      if (wanted && !words.some((term) => text(term, prefixes).toLowerCase().includes(wanted) || term.toLowerCase().includes(wanted))) continue;
      if (!grouped.has(one.subject)) grouped.set(one.subject, []);
      grouped.get(one.subject).push(one);
    }
    return [...grouped].sort(([a], [b]) => (text(a, prefixes) < text(b, prefixes) ? -1 : 1));
  }, [found, prefixes, sought]);
  const shown = []; // no more than `most` facts, of one subject or of many
  let left = most;
  for (const [subject, rows] of subjects) {
    if (left <= 0) break;
    shown.push([subject, rows.slice(0, left)]);
    left -= rows.length;
  }
  if (!subjects.length) return html`<p class="muted">Nothing fits “${sought}”.</p>`;
  return html`<div class="scroll" tabindex="0" role="region" aria-label="Facts"><table class="by-subject"><thead><tr><th scope="col">Subject</th><th scope="col">Property</th><th scope="col">Value</th><th scope="col">Is</th></tr></thead>
    ${shown.map(([subject, rows]) => html`<tbody key=${subject}>${rows.map((one, n) => html`<tr>
      ${n === 0 && html`<th scope="rowgroup" rowspan=${rows.length}><${Term} term=${subject} prefixes=${prefixes} cell /></th>`}
      <td><${Term} term=${one.predicate} prefixes=${prefixes} cell /></td><td><${Term} term=${one.object} prefixes=${prefixes} cell /></td>
      <td><span class=${`badge ${one.derived ? 'derived' : 'stated'}`}>${one.derived ? 'derived' : 'stated'}</span></td></tr>`)}</tbody>`)}</table></div>
    ${left < 0 || shown.length < subjects.length ? html`<button type="button" onClick=${() => setMost(most * 5)}>Show more of ${count(subjects.reduce((n, [, rows]) => n + rows.length, 0))} facts</button>` : ''}`;
}

