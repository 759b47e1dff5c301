// The timeline, the list of events under it, and one of them with its proof, or why there was none.
import { html, useCallback, useEffect, useMemo, useRef, useState } from '../vendor/preact.js';
import { at, get } from '../api.js';
import { colourOf, go, useServer } from '../context.js';
import { EventStore } from '../event_store.js';
import { List } from '../components/list.js';
import { Busy, Copy, Empty, Problem, Time } from '../components/notes.js';
import { Proof, place } from '../components/proof.js';
import { Timeline, scale } from '../components/timeline.js';
import { Values } from '../components/terms.js';
import { asNumber, asText, count, length, line } from '../components/times.js';

const BUCKETS = 180;
const SETTLE = 250;

/** Something after a while of silence. */
function useLater(value, delay) {
  const [later, setLater] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => setLater(value), delay);
    return () => clearTimeout(timer);
  }, [value]);
  return later;
}

/** Counts of a range, again when events come. */
function useCounts(range, integer, live) {
  const [counts, setCounts] = useState(null);
  const [problem, setProblem] = useState(null);
  const busy = useRef(false);
  const again = useRef(false);
  const asked = useRef(range);
  asked.current = range;
  const load = useCallback(async () => {
    if (busy.current) { again.current = true; return; }
    busy.current = true;
    const own = asked.current;
    try {
      const bounds = own ? { since: asText(own.begin, integer), until: asText(own.end, integer) } : {};
      const found = await get(at('/v1/events/counts', { ...bounds, buckets: innerWidth < 600 ? 60 : BUCKETS }));
      if (own === asked.current) { setCounts(found); setProblem(null); } else again.current = true;
    } catch (error) {
      setProblem(error.problem ?? { detail: error.message });
    }
    setTimeout(() => {
      busy.current = false;
      if (again.current) { again.current = false; load(); }
    }, SETTLE);
  }, [integer]);
  useEffect(() => { load(); }, [range]);
  useEffect(() => live.subscribe(() => { if (!document.hidden) load(); }), [load]);
  return [counts, problem, load];
}

export function Events({ rest, query }) {
  const { rules, emitting, live, prefixes, integer, state } = useServer();
  const [picked, setPicked] = useState([]);
  const [typed, setTyped] = useState('');
  const text = useLater(typed.trim(), SETTLE);
  const [range, setRange] = useState(null);
  const [cursor, setCursor] = useState(null);
  const [, draw] = useState(0);
  const store = useMemo(() => new EventStore(() => draw((n) => n + 1)), []);
  const [counts, problem, reload] = useCounts(range, integer, live);

  const filter = { rules: picked, text,
    since: range && asText(range.begin, integer), until: range && asText(range.end, integer) };
  const load = () => store.load(filter);
  useEffect(() => { load(); }, [picked, text, range]);
  useEffect(() => live.subscribe((rows) => store.take(rows)), []);
  useEffect(() => { if (state === 'live' && store.problem) { load(); reload(); } }, [state]);

  const zoom = (factor, around) => {
    if (!counts?.buckets) return;
    const now = scale(counts);
    const span = Math.max((now.end - now.begin) * factor, integer ? 2 : 2000);
    const left = around - (around - now.begin) * (span / (now.end - now.begin));
    if (factor > 1 && !range) return;
    setRange({ begin: left, end: left + span });
  };
  const shift = (part) => {
    const now = scale(counts);
    const by = (now.end - now.begin) * part;
    setRange({ begin: now.begin + by, end: now.end + by });
  };
  const lanes = useMemo(() => {
    const names = [...emitting, ...Object.keys(counts?.rules ?? {}).filter((name) => !emitting.includes(name))];
    return names.filter((name) => !picked.length || picked.includes(name)).map((name) => ({ name, colour: colourOf(rules, name) }));
  }, [rules, counts, picked]);
  const toggle = (name) => setPicked(picked.includes(name) ? picked.filter((one) => one !== name) : [...picked, name]);

  const chosen = rest[0] ?? null;
  const whyNot = query.get('why-not');
  const open = chosen !== null || whyNot !== null;
  const selected = chosen === null ? -1 : store.rows.findIndex((one) => String(one.number) === chosen);
  const nothing = store.loaded && !store.rows.length;
  const none = counts && !counts.buckets && !range;
  const bucket = counts?.buckets && cursor !== null && cursorBucket(counts, cursor);
  return html`<div class=${`events ${open ? 'with-detail' : ''}`}>
    <div class="main">
      <header class="head"><h1>Events</h1>
        <input type="search" placeholder="Search events" aria-label="Search events" value=${typed} onInput=${(e) => setTyped(e.target.value)} />
      </header>
      ${emitting.length > 1 && html`<div class="chips" role="group" aria-label="Rules shown">
        ${emitting.map((name) => html`<button type="button" key=${name} class=${`chip ${colourOf(rules, name)}`} aria-pressed=${picked.includes(name)}
          onClick=${() => toggle(name)}><span class="dot" /> ${name}</button>`)}
        ${picked.length > 0 && html`<button type="button" class="quiet" onClick=${() => setPicked([])}>All rules</button>`}</div>`}
      ${problem && html`<${Problem} problem=${problem} retry=${reload} />`}
      ${!none && counts?.buckets > 0 && html`<section class="card" aria-label="Timeline of events">
        <div class="tools">
          <span class="range">${rangeText(counts)}</span>
          <span class="buttons">
            <button type="button" onClick=${() => shift(-0.5)} aria-label="Earlier">←</button>
            <button type="button" onClick=${() => shift(0.5)} aria-label="Later" disabled=${!range}>→</button>
            <button type="button" onClick=${() => zoom(0.5, cursor ?? middle(counts))} aria-label="Zoom in">+</button>
            <button type="button" onClick=${() => zoom(2, cursor ?? middle(counts))} aria-label="Zoom out" disabled=${!range}>−</button>
            <button type="button" onClick=${() => { setRange(null); setCursor(null); }} disabled=${!range}>All</button>
          </span>
        </div>
        <${Timeline} lanes=${lanes} counts=${counts} cursor=${cursor} onCursor=${setCursor} onZoom=${zoom}
          onRange=${(begin, end) => setRange({ begin, end })} onOpen=${() => bucket && setRange(bucket)} />
        ${counts.counted !== undefined && html`<p class="hint">The newest ${count(counts.counted)} of ${count(counts.total)} events are counted: zoom in to see older ones.</p>`}
        <div class="cursor-bar">${bucket ? html`
          <span><strong>${line(asText(bucket.begin, integer))}</strong> <span class="muted">for ${length(bucket.end - bucket.begin, integer)}</span></span>
          <span class="buttons"><button type="button" onClick=${() => setRange(bucket)}>Show these</button>
          <button type="button" onClick=${() => go(at('#/events', { 'why-not': picked[0] ?? emitting[0] ?? rules[0], at: asText(bucket.begin, integer) }))}>Why not…</button>
          <button type="button" class="quiet" onClick=${() => setCursor(null)}>Clear</button></span>`
    : html`<span class="muted">Choose a time: click, or arrow keys. Drag to zoom.</span>`}</div>
      </section>`}
      ${store.problem && html`<${Problem} problem=${store.problem} retry=${load} />`}
      ${none && !text && !picked.length ? html`<${NoEvents} />` : nothing && !store.busy ? html`<${Empty} title="No event fits">
          <p>Nothing was found for this search, these rules and this time.</p>
          <button type="button" onClick=${() => { setTyped(''); setPicked([]); setRange(null); }}>Show all events</button><//>`
    : html`<section class="card grow" aria-label="Events">
        <${List} count=${store.rows.length} height=${innerWidth < 600 ? 64 : 44} prepended=${store.prepended} label="Events, newest first"
          selected=${selected} id=${(n) => `event-${store.rows[n].number}`} onEnd=${() => store.more()}
          onSelect=${(n) => go(`#/events/${store.rows[n].number}`)}
          row=${(n) => html`<${Row} one=${store.rows[n]} gone=${store.takenBack(store.rows[n]) !== null} colour=${colourOf(rules, store.rows[n].rule)} prefixes=${prefixes} />`}
          foot=${store.busy && html`<${Busy} />`} /></section>`}
    </div>
    ${open && html`<aside class="detail" aria-label=${whyNot === null ? 'Event' : 'Why not'}>
      ${whyNot === null ? html`<${Detail} key=${chosen} number=${chosen} gone=${selected < 0 ? null : store.takenBack(store.rows[selected])} />` : html`<${WhyNot} key=${query.toString()} rule=${whyNot} time=${query.get('at') ?? ''} />`}</aside>`}
  </div>`;
}

function Row({ one, gone, colour, prefixes }) {
  const values = html`<${Values} values=${one.bindings} prefixes=${prefixes} />`;
  return html`<${Time} time=${one.time} /><span class=${`rule ${colour}`}><span class="dot" /> ${gone ? html`<s>${one.rule}</s>` : one.rule}</span>
    ${one.change === -1 && html`<span class="sign">Taken back</span>`}${gone && html`<span class="sign">Withdrawn</span>`}
    ${gone || one.change === -1 ? html`<s class="gone">${values}</s>` : values}`;
}

/** What a correction did to an event, when, and the late graphs that made it. */
function Corrected({ event }) {
  if (event.corrected_at === undefined) return null;
  return html`<dt>${event.change < 0 ? 'Taken back' : 'Added'}</dt><dd><${Time} time=${event.corrected_at} /></dd>
    <dt>Late</dt><dd>${event.cause.map((one) => html`<div><${Time} time=${one.time} /> <span class="muted">${place(one.place)}</span></div>`)}</dd>`;
}

function NoEvents() {
  const { rules, status } = useServer();
  if (!rules.length) {
    return html`<${Empty} title="No rules yet"><p>Rules say what is an event. Write the first one, or start the server with a rule file.</p>
      <a class="button" href="#/rules">Write a rule</a><//>`;
  }
  const fed = status?.graphs > 0;
  return html`<${Empty} title=${fed ? 'No event yet' : 'Nothing has come yet'}>
    <p>${fed ? 'Documents come, and no rule has found an event. The rules page shows how far each one gets.' : 'Events appear here as soon as documents make a rule fire. Send one:'}</p>
    ${fed ? html`<a class="button" href="#/rules">See how far the rules get</a>`
    : html`<pre tabindex="0">${example(status?.streams?.[0] ?? 'input')}</pre>`}<//>`;
}

const example = (stream) => `curl '${location.origin}/v1/streams/${stream}' \\
  -H 'Content-Type: application/x-ndjson' \\
  -d '{"time": 1, "graph": "<urn:a> <urn:b> 1 ."}'`;

const middle = (counts) => { const { begin, end } = scale(counts); return (begin + end) / 2; };

function cursorBucket(counts, cursor) {
  const { begin, width } = scale(counts);
  const n = Math.floor((cursor - begin) / width);
  return n < 0 || n >= counts.buckets ? null : { begin: begin + n * width, end: begin + (n + 1) * width - 1 };
}

function rangeText(counts) {
  const { begin, end, integer } = scale(counts);
  const [from, to] = [line(counts.since), line(counts.until)];
  return html`<span class="tabular">${from} – ${from.slice(0, 10) === to.slice(0, 10) && !integer ? to.slice(11) : to}</span>
    <span class="muted"> ${length(end - begin, integer)}${integer ? '' : ', UTC'}</span>`;
}

/** One event and its proof. */
function Detail({ number, gone }) {
  const { rules, texts, prefixes } = useServer();
  const [event, setEvent] = useState(null);
  const [proof, setProof] = useState(null);
  const [problem, setProblem] = useState(null);
  const title = useRef(null);
  const load = async () => {
    setProblem(null);
    try {
      setEvent(await get(`/v1/events/${encodeURIComponent(number)}`));
      setProof(await get(`/v1/events/${encodeURIComponent(number)}/why`));
    } catch (error) {
      setProblem(error.problem ?? { detail: error.message });
    }
  };
  useEffect(() => { const timer = setTimeout(load, SETTLE); return () => clearTimeout(timer); }, [number]);
  return html`<header class="head"><h2 ref=${title}>${event ? html`<span class=${`rule ${colourOf(rules, event.rule)}`}><span class="dot" /> ${event.rule}</span>` : 'Event'}</h2>
      <a class="close" href="#/events" aria-label="Close">Close</a></header>
    ${event && html`<dl class="facts"><dt>Time</dt><dd><${Time} time=${event.time} /></dd>
      <${Corrected} event=${event} />
      ${gone && html`<dt>Withdrawn</dt><dd><a href=${`#/events/${gone.number}`}>at <${Time} time=${gone.at} /></a></dd>`}
      ${Object.entries(event.bindings ?? {}).map(([name, term]) => html`<dt>${name}</dt><dd><${Values} values=${{ '': term }} prefixes=${prefixes} /></dd>`)}
      <dt>Event</dt><dd><span class="id">${event.id}</span> <${Copy} text=${event.id} what="the id" /></dd></dl>`}
    <h3>${proof?.now ? 'Why it was withdrawn' : 'Why it happened'}</h3>
    ${problem ? html`<${Problem} problem=${problem} retry=${load} />` : proof ? html`<${Proof} proof=${proof} texts=${texts} prefixes=${prefixes} />` : html`<${Busy} what="Running it again" />`}
    ${event?.graph && html`<details class="graph"><summary>Its graph</summary><pre tabindex="0">${event.graph}</pre></details>`}`;
}

/** How far a rule came at a time. */
export function WhyNot({ rule, time }) {
  const { rules, texts, prefixes } = useServer();
  const [draft, setDraft] = useState({ rule, time });
  const [found, setFound] = useState(null);
  const [problem, setProblem] = useState(null);
  const load = async () => {
    setFound(null);
    setProblem(null);
    try {
      setFound(await get(at('/v1/why-not', { rule, at: time })));
    } catch (error) {
      setProblem(error.problem ?? { detail: error.message });
    }
  };
  useEffect(() => { if (rule && time) load(); }, [rule, time]);
  const ask = (event) => {
    event.preventDefault();
    if (draft.rule === rule && draft.time === time) load();
    else go(at('#/events', { 'why-not': draft.rule, at: draft.time }));
  };
  return html`<header class="head"><h2>Why not?</h2><a class="close" href="#/events" aria-label="Close">Close</a></header>
    <form class="ask" onSubmit=${ask}>
      <label>Rule <select value=${draft.rule} onChange=${(e) => setDraft({ ...draft, rule: e.target.value })}>${rules.map((name) => html`<option value=${name}>${name}</option>`)}</select></label>
      <label>At <input type="text" value=${draft.time} spellcheck=${false} onInput=${(e) => setDraft({ ...draft, time: e.target.value })} /></label>
      <button type="submit">Ask</button></form>
    ${problem ? html`<${Problem} problem=${problem} />` : found ? html`<${Proof} proof=${found} texts=${texts} prefixes=${prefixes} />` : time ? html`<${Busy} what="Running it again" />`
    : html`<p class="muted">Choose a time on the timeline, or write one.</p>`}`;
}
