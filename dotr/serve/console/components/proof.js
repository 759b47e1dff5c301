// Why an event happened, or why a rule did not: the proof that the server has as JSON, as a tree that opens.
import { html, useState } from '../vendor/preact.js';
import { colourOf, useServer } from '../context.js';
import { Term, Values, text } from './terms.js';
import { Time } from './notes.js';
import { count, counted } from './times.js';

const STATED = { stream: 'stream', background: 'background', inserted: 'inserted', held: 'held' };
const OPEN_DEPTH = 4;
const ROWS = 20; // at each end of a match of a sequence

/** `input@12:406` as words: the source, the document and the line. */
export function place(written) {
  const inbox = /^(.+)@(\d+)(?::(\d+))?(?::\d+)?$/.exec(written ?? '');
  if (inbox) return `${inbox[1]}, document ${inbox[2]}${inbox[3] ? `, line ${inbox[3]}` : ''}`;
  const file = /^(.+?):(\d+)(?::(\d+))?$/.exec(written ?? '');
  if (file) return `${file[1]}, line ${file[2]}`;
  return written ?? '';
}

/** The tree. `proof`: JSON of `/why` or `/why-not`; `texts`: rules as {name: {file, line, text}}. */
export function Proof({ proof, texts = {}, prefixes = {} }) {
  const { rules, heads, sequences } = useServer();
  const shared = { texts, prefixes, sequences, colour: (name) => colourOf([...rules, ...heads], name) };
  const all = proof.all ?? [proof];
  return html`<ul class="proof">${all.map((one) => html`<${Root} ...${{ one, shared }} />`)}</ul>`;
}

function Root({ one, shared }) {
  if (one.corrections) return html`<${Corrected} one=${one} shared=${shared} />`;
  if (one.fired === false) return html`<${NotFired} one=${one} shared=${shared} />`;
  if (one.triple) return html`<${Triple} one=${one} shared=${shared} depth=${0} />`;
  return html`<${Event} one=${one} shared=${shared} depth=${0} />`;
}

/** An event that corrections changed: what they did; of one that was withdrawn also why, and what it was. */
function Corrected({ one, shared }) {
  const now = one.now?.fired === false ? NotFired : Event;
  return [
    ...one.corrections.map((made) => html`<${Line} side=${`${count(made.cause.length)} late`} tone=${made.change < 0 ? 'bad' : 'good'}
        head=${html`${made.change < 0 ? 'withdrawn' : 'added'} <${Time} time=${made.corrected_at} />`}>
      ${made.cause.map((late) => html`<${Note}>late graph <${Time} time=${late.time} /> <span class="place">${place(late.place)}</span><//>`)}<//>`),
    one.now && html`<${now} one=${one.now} shared=${shared} depth=${0} />`,
    html`<${Event} one=${one} shared=${shared} depth=${0} />`,
  ];
}

/** A line of the tree; with children it opens and closes. */
function Line({ head, side, tone = '', depth = 0, children = [] }) {
  const inner = [children].flat(4).filter(Boolean);
  const line = html`<span class="line"><span class="what">${head}</span>${side ? html` <span class="side">${side}</span>` : null}</span>`;
  if (!inner.length) return html`<li class=${`leaf ${tone}`}>${line}</li>`;
  return html`<li class=${tone}><details open=${depth < OPEN_DEPTH}><summary>${line}</summary><ul>${inner}</ul></details></li>`;
}

function Event({ one, shared, depth, label }) {
  const { prefixes, texts } = shared;
  const name = one.rule ? html`<${Named} name=${one.rule} shared=${shared} />` : html`<strong>${text(`<${one.id}>`, prefixes)}</strong>`;
  const head = html`${label} ${name}${one.time !== undefined && html` <${Time} time=${one.time} />`} <${Values} values=${one.bindings} prefixes=${prefixes} />`;
  if (one.above) return html`<${Line} head=${head} side="shown above" />`;
  if (!one.trigger) return html`<${Line} head=${head} side=${one.kept === false ? 'not kept any more' : 'an event'} />`;
  if (one.rows) { // its values are those of the fact above
    const match = html`${label} ${name} <${Time} time=${one.time} />`;
    return html`<${Line} head=${label ? match : head} side=${counted(one.rows.length, 'row')} tone="good" depth=${depth}>
      ${texts[one.rule] && html`<${RuleText} rule=${texts[one.rule]} kind="sequence" name=${one.rule} />`}
      <${Rows} rows=${one.rows} shared=${shared} />
      <${Note}>${one.certain}<//><//>`;
  }
  return html`<${Line} head=${head} side=${one.now ? 'was reported, and withdrawn' : 'happened'} tone=${one.now ? '' : 'good'} depth=${depth}>
    ${texts[one.rule] && html`<${RuleText} rule=${texts[one.rule]} name=${one.rule} />`}
    <${Fact} one=${one.trigger} shared=${shared} depth=${depth + 1} word="trigger" />
    ${(one.steps ?? []).map((step) => html`<${Step} one=${step} shared=${shared} depth=${depth + 1} />`)}
  <//>`;
}

/** A rule as it is written, closed at first. */
function RuleText({ rule, name, kind = 'rule' }) {
  const [open, setOpen] = useState(false);
  return html`<li class="rule-text"><button type="button" class="quiet" aria-expanded=${open} onClick=${() => setOpen(!open)}>
    ${open ? 'Hide' : 'Show'} ${kind} ${name}</button> <span class="side">${rule.file}, line ${rule.line}</span>
    ${open && html`<pre tabindex="0">${rule.text}</pre>`}</li>`;
}

/** A rule or a head, in its colour. */
function Named({ name, shared }) {
  return html`<span class=${`named ${shared.colour(name)}`}><span class="dot" /><strong>${name}</strong></span>`;
}

const word = (name) => html`<span class="word">${name}</span>`;

function Fact({ one, shared, depth, word: clause, window, side }) {
  const { prefixes } = shared;
  const head = html`${clause && html`${word(clause)} `}<strong>${one.position}</strong>${window && html` <span class="window">${window}</span>`} <${Time} time=${one.time} /> <${Values} values=${one.values} prefixes=${prefixes} />`;
  return html`<${Line} head=${head} side=${side} depth=${depth}>${because(one, shared, depth + 1)}<//>`;
}

/** The rows of a match of a sequence, each with its element and closed; of many those at the ends. */
function Rows({ rows, shared }) {
  const [all, setAll] = useState(false);
  const row = (one) => html`<${Row} one=${one} shared=${shared} />`;
  if (all || rows.length <= 2 * ROWS + 1) return rows.map(row);
  return html`${rows.slice(0, ROWS).map(row)}
    <li class="rule-text"><button type="button" class="quiet" onClick=${() => setAll(true)}>Show ${count(rows.length - 2 * ROWS)} more rows</button></li>
    ${rows.slice(-ROWS).map(row)}`;
}

/** A row and its element; `untrue`: what of the element's condition was not true of it. */
function Row({ one, shared, untrue }) {
  const source = one.position === one.element ? null : html` <span class="side">${one.position}</span>`;
  const head = html`${untrue && 'no '}<strong>${one.element || 'skipped'}</strong>${source} <${Time} time=${one.time} /> <${Values} values=${one.values} prefixes=${shared.prefixes} />`;
  if (!untrue) return html`<${Line} head=${head} depth=${OPEN_DEPTH}>${because(one, shared, OPEN_DEPTH)}<//>`;
  return html`<${Line} head=${head} tone="bad">
    ${untrue.map((test) => html`<${Note} tone="bad"><code>${test}</code><//>`)}
    ${because(one, shared, OPEN_DEPTH)}<//>`;
}

/** How far a sequence came: the rows of the mapping that came furthest, and what ended it. */
function Unmatched({ one, shared }) {
  const until = one.until !== undefined && html`<${Time} time=${one.until} />`;
  const ended = one.ended_by;
  const wanted = html`<strong>${one.waits}</strong>`;
  return html`<${Rows} rows=${one.rows} shared=${shared} />
    ${!one.rows.length && !ended && html`<${Note} tone="bad">there is no row from which a match could begin<//>`}
    ${ended && html`<${Row} one=${{ ...ended, element: one.waits }} shared=${shared} untrue=${one.untrue ?? []} />`}
    ${!ended && until && html`<${Note} tone=${one.open ? '' : 'bad'}>${one.open
    ? one.waits ? html`it waits for ${wanted} until ${until}` : html`it is complete, and may still go on until ${until}`
    : html`no ${wanted} came until ${until}`}<//>`}`;
}

/** What a fact follows from, whatever it is. */
function because(one, shared, depth) {
  const triples = (found, note) => (found ?? []).map((triple) =>
    html`<${Triple} one=${triple} shared=${shared} depth=${depth} note=${note} />`);
  return [
    one.change && html`<${Note}>${change(one)}<//>`,
    one.event && html`<${Event} one=${one.event} shared=${shared} depth=${depth} label=${word(shared.sequences.includes(one.event.rule) ? 'match' : 'event')} />`,
    triples(one.because),
    triples(one.moved, 'changed'),
    (one.absent ?? []).map((pattern) => html`<${Note} tone="absent">nothing matches <code>${String(pattern)}</code><//>`),
    one.rows && html`<${Note}>of ${count(one.rows)} solutions<//>`,
    one.engine && html`<${Note}>${one.engine}<//>`,
    one.holds && html`<${Held} one=${one.holds} shared=${shared} depth=${depth} />`,
    one.no_more && html`<${Failures} found=${one.no_more} />`,
    one.others?.length && html`<${Line} head=${`${one.others.length} more ways`} depth=${OPEN_DEPTH}>
      ${one.others.map((other) => because(other, shared, depth + 1))}<//>`,
  ];
}

function change(one) {
  const begins = one.change === 'ISTREAM';
  const counted = one.before === undefined ? '' : `, ${one.before} such answers before, ${one.after} from then on`;
  return `${one.change}: the answer ${begins ? 'begins' : 'ends'}${counted}`;
}

const Note = ({ children, tone = '' }) => html`<li class=${`leaf note ${tone}`}>${children}</li>`;

function Triple({ one, shared, depth, note }) {
  const { prefixes } = shared;
  const head = html`<span class="triple">${one.triple.map((term) => html`<${Term} term=${term} prefixes=${prefixes} /> `)}</span>`;
  if (one.above) return html`<${Line} head=${head} side="shown above" />`;
  if (one.below) return html`<${Line} head=${head} side=${`${count(one.below)} more steps`} />`;
  if (one.unopened) return html`<${Line} head=${head} side=${one.unopened} />`;
  if (one.holds === false) {
    return html`<${Line} head=${head} side="does not hold" tone="bad" depth=${depth}>
      ${one.attempts.map((tried) => html`<${Note}><code>${tried.rule}</code> lacks <code>${tried.lacks.join(' ')}</code><//>`)}<//>`;
  }
  if (one.premises) {
    const by = html`<span class="badge derived">derived</span>`;
    return html`<${Line} head=${head} side=${by} depth=${depth}>
      <${Note}><code class="rule">${one.rule}</code>${one.place && html` <span class="side">${place(one.place)}</span>`}<//>
      ${one.premises.map((premise) => html`<${Triple} one=${premise} shared=${shared} depth=${depth + 1} />`)}
      ${one.absent.map((pattern) => html`<${Note} tone="absent">nothing matches <code>${pattern.join(' ')}</code><//>`)}
      ${(one.aggregates ?? []).map((found) => html`<${Note}>of ${count(found.solutions)} solutions<//>`)}<//>`;
  }
  const period = one.since === undefined ? '' : `since ${one.since ?? 'the beginning'}${one.until ? ` until ${one.until}` : ''}`;
  const side = html`<span class=${`badge ${one.stated}`}>${note ?? STATED[one.stated] ?? one.stated}</span> <span class="place">${place(one.place)}${one.late ? ', late' : ''}</span>${period && html` <span class="period">${period}</span>`}`;
  return html`<${Line} head=${head} side=${side} />`;
}

function Step({ one, shared, depth }) {
  const inside = one.in_window === null || one.in_window === undefined ? '' : `${count(one.in_window)} in the window`;
  const fits = one.candidates === undefined ? '' : `, ${count(one.candidates)} fit`;
  if (one.fact) {
    return html`<${Fact} one=${one.fact} shared=${shared} depth=${depth} word=${one.clause} window=${one.window} side=${inside + fits} />`;
  }
  const head = html`${word(one.clause)} <strong>${one.position}</strong> <span class="window">${one.window}</span>${one.variable && html` <span class="values"><span class="name">${one.variable}</span> <${Term} term=${one.value} prefixes=${shared.prefixes} /></span>`}`;
  const side = one.unopened ?? (one.variable ? inside + fits : `nothing fits${inside ? `, ${inside}` : ''}`);
  return html`<${Line} head=${head} side=${side} depth=${depth}>
    ${(one.facts ?? []).map((fact) => html`<${Note}><${Time} time=${fact.time} /> <${Values} values=${fact.values} prefixes=${shared.prefixes} /><//>`)}
    ${nearest(one, shared)}<//>`;
}

function nearest(one, shared) {
  if (!one.nearest) return [];
  return [html`<${Note}>nearest: <${Time} time=${one.nearest.time} /> <${Values} values=${one.nearest.values} prefixes=${shared.prefixes} /><//>`,
    ...(one.not_true ?? []).map((test) => html`<${Note} tone="bad">not true: <code>${test}</code><//>`)];
}

function Held({ one, shared, depth }) {
  const head = html`<${Named} name=${one.head} shared=${shared} /> <span class="values">${(one.values ?? []).map((term) => html`<${Term} term=${term} prefixes=${shared.prefixes} /> `)}</span> <${Time} time=${one.time} />`;
  if (one.above || !one.rule) return html`<${Line} head=${head} side=${one.above ? 'shown above' : ''} />`;
  return html`<${Line} head=${head} side="holds" depth=${depth}>
    <${Note}><code class="rule">${one.rule}</code> <span class="side">${place(one.place)}</span><//>
    ${one.body.map((step) => html`<${Line} head=${html`<code>${step.literal}</code>`} side=${step.from ? `from ${step.from}` : ''} depth=${depth + 1}>
      ${(step.support ?? []).map((atom) => (atom.position
    ? html`<${Fact} one=${atom} shared=${shared} depth=${depth + 2} />`
    : html`<${Held} one=${atom} shared=${shared} depth=${depth + 2} />`))}<//>`)}<//>`;
}

const Failures = ({ found }) => found.map((one) => html`<${Note} tone="bad"><code>${one.rule}</code>
  ${one.failed && html` fails at <code>${one.failed}</code>`}<//>`);

function NotFired({ one, shared }) {
  const { texts } = shared;
  if (one.rows) {
    return html`<${Line} head=${html`<strong>${one.rule}</strong> <${Time} time=${one.time} />`} side="has no match" tone="bad">
      ${texts[one.rule] && html`<${RuleText} rule=${texts[one.rule]} kind="sequence" name=${one.rule} />`}
      <${Unmatched} one=${one} shared=${shared} /><//>`;
  }
  const head = html`<strong>${one.rule}</strong> <${Time} time=${one.time} />`;
  return html`<${Line} head=${head} side="did not happen" tone="bad">
    ${texts[one.rule] && html`<${RuleText} rule=${texts[one.rule]} name=${one.rule} />`}
    ${one.trigger ? html`<${Blocked} one=${one} shared=${shared} />` : html`<${NoTrigger} one=${one} shared=${shared} />`}<//>`;
}

function NoTrigger({ one, shared }) {
  const { prefixes } = shared;
  if (one.sequence) return one.sequence.map((found) => html`<${Root} one=${found} shared=${shared} />`);
  return [
    html`<${Note} tone="bad">${one.graph ? 'the trigger has no answer at this time' : 'no graph came at this time'}<//>`,
    one.held_before && html`<${Note}>it held before: only its beginning counts<//>`,
    one.not_held && html`<${Failures} found=${one.not_held} />`,
    ...patterns(one, prefixes),
    ...(one.left_out ?? []).map((note) => html`<${Note}>${note}<//>`),
  ];
}

/** How far the patterns of a query came, those that did not match marked. */
function patterns(one, prefixes) {
  const matched = one.matched ?? 0;
  return [
    ...(one.patterns ?? []).map((pattern, place_) => html`<${Note} tone=${place_ < matched ? 'good' : 'bad'}>
      ${place_ < matched ? 'matches' : 'no match'} <code>${String(pattern)}</code><//>`),
    ...(one.nearest ?? []).map((triple) => html`<${Note}>there was <span class="triple">${triple.map((term) => html`<${Term} term=${term} prefixes=${prefixes} /> `)}</span><//>`),
    ...(one.untrue ?? []).map((test) => html`<${Note} tone="bad">not true: <code>${test}</code><//>`),
  ];
}

function Blocked({ one, shared }) {
  const { failed } = one;
  return [
    html`<${Fact} one=${one.trigger} shared=${shared} depth=${1} word="trigger" />`,
    ...one.steps.map((step) => html`<${Step} one=${step} shared=${shared} depth=${1} />`),
    failed ? html`<${Line} tone="bad" depth=${1} side=${one.reason}
        head=${html`${word(failed.clause)} <strong>${failed.position}</strong> <span class="window">${failed.window}</span>`}>
      ${failed.in_window !== null && failed.in_window !== undefined && html`<${Note}>${count(failed.in_window)} in the window<//>`}
      ${nearest(failed, shared)}
      ${failed.outside_window && html`<${Note} tone="bad">outside of the window<//>`}
      ${failed.consumed_by && html`<${Note} tone="bad">consumed by ${failed.consumed_by}${failed.consumed_at ? ` at ${failed.consumed_at}` : ''}<//>`}
      ${failed.blocked_by && html`<${Fact} one=${failed.blocked_by} shared=${shared} depth=${2} word="because of" />`}
      ${failed.nearest_instant && html`<${Line} head=${html`at <${Time} time=${failed.nearest_instant.time} />`} depth=${2}>
        ${patterns(failed.nearest_instant, shared.prefixes)}<//>`}<//>`
      : html`<${Note} tone="bad">${one.reason}<//>`,
  ];
}
