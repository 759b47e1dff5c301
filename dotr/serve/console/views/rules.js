// The rules: how far each gets, its text; and the editor, where they are checked, tried and put in force.
import { html, useEffect, useMemo, useRef, useState } from '../vendor/preact.js';
import { at, get, send } from '../api.js';
import { colourOf, useServer } from '../context.js';
import { Editor } from '../components/editor.js';
import { Funnel } from '../components/funnel.js';
import { Busy, Empty, Problem, Time } from '../components/notes.js';
import { Values } from '../components/terms.js';
import { count, counted } from '../components/times.js';

const SETTLE = 350;
const FIRST = 'rules.dotr';
const BLANK = `# A rule finds an event: FROM a fact, AND others before it, WITH what it says.
PREFIX : <urn:x:>

RULE Hot
DEFINE { dotr_e a :Hot ; :in ?room ; :is ?celsius }
FROM   Reading := { SELECT ?room ?celsius WHERE { ?room :celsius ?celsius FILTER(?celsius > 60) } }
WITH   ?room := Reading.?room, ?celsius := Reading.?celsius
`;

const problemOf = (error) => error.problem ?? { detail: error.message };

export function Rules({ rest }) {
  return rest[0] === 'edit' ? html`<${Edit} name=${rest[1] ?? ''} />` : html`<${Overview} />`;
}

function Planned() {
  const { deployed, refresh } = useServer();
  const [problem, setProblem] = useState(null);
  if (!deployed.planned) return null;
  const withdraw = async () => {
    try { await send('/v1/planned-rules', { method: 'DELETE' }); setProblem(null); await refresh(); } catch (error) { setProblem(problemOf(error)); }
  };
  return html`<div class="notice" role="status"><span>Other rules are in force from <${Time} time=${deployed.planned} /> on.</span>
    <button type="button" onClick=${withdraw}>Withdraw</button></div><${Problem} problem=${problem} />`;
}

function Overview() {
  const { rules, emitting, sequences, texts, status, deployed, refresh } = useServer();
  const [problem, setProblem] = useState(null);
  const [asked, setAsked] = useState('');
  const of = new Map((status?.rules ?? []).map((one) => [one.rule, one]));
  const remove = async (name) => {
    if (asked !== name) { setAsked(name); return; }
    setAsked('');
    try {
      await send(`/v1/rules/${encodeURIComponent(name)}`, { method: 'DELETE', headers: { 'If-Match': `"${deployed.digest}"` } });
      setProblem(null);
    } catch (error) { setProblem(problemOf(error)); }
    await refresh();
  };
  if (!rules.length) {
    return html`<div class="page"><${Empty} title="No rules yet"><p>A rule says which facts, in which order and how far apart, are an event.</p>
      <a class="button" href="#/rules/edit">Write the first rule</a><//></div>`;
  }
  return html`<div class="page"><header class="head"><h1>Rules</h1><a class="button" href="#/rules/edit">Edit</a></header>
    <${Planned} /><${Problem} problem=${problem} />
    ${rules.map((name) => {
    const one = of.get(name) ?? { events: 0, last: null, remembered: 0, funnel: [] };
    const text = texts[name];
    return html`<section class="card rule-card" key=${name} aria-label=${name}>
      <header class="head"><h2 class=${colourOf(rules, name)}><span class="dot" /> ${name}</h2>
        <span class="muted">${sequences.includes(name) ? 'a sequence: rules read its matches' : !emitting.includes(name) ? 'private: other rules read its events' : one.events ? html`last event <${Time} time=${one.last} />` : 'no event yet'}${one.remembered ? `, remembers ${counted(one.remembered, 'fact')}` : ''}</span></header>
      <${Funnel} stages=${one.funnel} events=${one.events} colour=${colourOf(rules, name)} />
      <div class="buttons">
        <a class="button" href=${at('#/events', { 'why-not': name, at: status?.watermark ?? '' })}>Why not…</a>
        ${text && html`<a class="button" href=${`#/rules/edit/${encodeURIComponent(name)}`}>Edit</a>`}
        <button type="button" class="danger" onClick=${() => remove(name)} onBlur=${() => setAsked('')}>${asked === name ? `Really remove ${name}` : 'Remove'}</button></div>
      ${text && html`<details class="graph"><summary>Text, ${text.file}, line ${text.line}</summary><pre tabindex="0">${text.text}</pre></details>`}</section>`;
  })}</div>`;
}

const own = (files) => Object.fromEntries(Object.entries(files).filter(([name]) => !name.startsWith('dotr:')));

function Edit({ name }) {
  const { deployed, refresh, texts } = useServer();
  const first = useMemo(() => {
    const files = own(deployed.files);
    return Object.keys(files).length ? { files, roots: deployed.roots, digest: deployed.digest } : { files: { [FIRST]: BLANK }, roots: [FIRST], digest: deployed.digest };
  }, []);
  const [base, setBase] = useState(first);
  const [files, setFiles] = useState(first.files);
  const [open, setOpen] = useState(texts[name]?.file in first.files ? texts[name].file : first.roots[0]);
  const [grammars, setGrammars] = useState(null);
  const [diagnostics, setDiagnostics] = useState([]);
  const [checked, setChecked] = useState(null);
  const [from, setFrom] = useState('');
  const [busy, setBusy] = useState('');
  const [problem, setProblem] = useState(null);
  const [tried, setTried] = useState(null);
  const [done, setDone] = useState(null);
  const [turn, setTurn] = useState(0);
  const asked = useRef(0);

  useEffect(() => {
    Promise.all(['dotr', 'dlog', 'lars'].map((one) => get(`/console/grammar/${one}.json`))).then(([dotr, dlog, lars]) => setGrammars({ dotr, dlog, lars }), (error) => setProblem(problemOf(error)));
  }, []);
  const body = () => ({ method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify({ files, roots: base.roots }) });
  useEffect(() => {
    const turn = ++asked.current;
    setChecked(null);
    const timer = setTimeout(async () => {
      try {
        const found = await get('/v1/rules/check', body());
        if (turn === asked.current) { setDiagnostics(found.diagnostics); setChecked(true); }
      } catch (error) { if (turn === asked.current) setProblem(problemOf(error)); }
    }, SETTLE);
    return () => clearTimeout(timer);
  }, [files]);

  const change = (text) => { setFiles((now) => ({ ...now, [open]: text })); setTried(null); setDone(null); setProblem(null); };
  const wrong = diagnostics.filter((one) => one.severity === 'error').length;
  const changed = Object.entries(files).some(([one, text]) => base.files[one] !== text) || !Object.keys(deployed.files).length;
  const act = (what, call) => async () => {
    setBusy(what);
    setProblem(null);
    try { await call(); } catch (error) { setProblem(problemOf(error)); }
    setBusy('');
  };
  const tryThem = act('try', async () => setTried(await get('/v1/rules/try', body())));
  const put = act('put', async () => {
    const found = await get(at('/v1/rules', { from: from.trim() }), { ...body(), method: 'PUT', headers: { 'Content-Type': 'application/json', 'If-Match': `"${base.digest}"` } });
    setDone(found);
    setTried(null);
    if (found.digest) setBase({ ...base, files, digest: found.digest });
    await refresh();
  });
  const again = async () => {
    const now = await get('/v1/rules');
    setBase({ ...base, digest: now.digest });
    setProblem(null);
    await refresh();
  };
  const theirs = own(deployed.files);
  const mine = Object.keys(files).filter((one) => files[one] !== base.files[one]);
  const both = mine.filter((one) => theirs[one] !== base.files[one]);
  const reload = () => {
    const merged = { ...theirs, ...Object.fromEntries(mine.map((one) => [one, files[one]])) };
    const roots = [...new Set([...deployed.roots, ...base.roots.filter((one) => mine.includes(one))])];
    setBase({ files: theirs, roots, digest: deployed.digest });
    setFiles(merged);
    if (!(open in merged)) setOpen(roots[0]);
    setTurn(turn + 1);
    setProblem(null);
  };
  const kind = /\.(dlog|lars)$/.exec(open)?.[1] ?? 'dotr';
  const here = diagnostics.filter((one) => one.file === open);
  const shown = useMemo(() => here, [diagnostics, open]);
  return html`<div class="page edit"><header class="head"><h1>Edit rules</h1><a class="button" href="#/rules">Back</a></header>
    <${Planned} />
    ${deployed.digest !== base.digest && !busy && html`<div class="notice" role="status"><span>Others changed the rules.${both.length ? ` You both changed ${both.join(', ')}: your text stays.` : mine.length ? ' What you changed stays.' : ''}</span>
      <button type="button" onClick=${reload}>Load theirs</button></div>`}
    ${Object.keys(files).length > 1 && html`<div class="tabs" role="group" aria-label="Files">${Object.keys(files).map((one) => html`<button type="button" aria-pressed=${one === open} onClick=${() => setOpen(one)}>${one}${diagnostics.some((d) => d.file === one && d.severity === 'error') ? ' ✕' : ''}</button>`)}</div>`}
    ${grammars ? html`<${Editor} key=${`${turn} ${open}`} text=${files[open]} grammar=${grammars[kind]} diagnostics=${shown} onChange=${change} label=${`Rules, ${open}`} run=${{ 'Mod-s': () => put() }} />` : html`<${Busy} what="Opening the editor" />`}
    <div class="checked" role="status">${checked === null ? 'Checking…' : diagnostics.length ? `${counted(wrong, 'error')}, ${counted(diagnostics.length - wrong, 'warning')}` : 'No mistakes'}</div>
    ${diagnostics.length > 0 && html`<ul class="diagnostics">${diagnostics.map((one) => html`<li class=${one.severity}>
      <span class="said">${one.message}</span> <span class="muted">${one.file}${one.range ? `, line ${one.range.start.line}` : ''} · ${one.code}</span>
      ${one.notes.map((note) => html`<p>${note}</p>`)}${one.hint && html`<p><strong>Try</strong> ${one.hint}</p>`}</li>`)}</ul>`}
    <section class="card actions" aria-label="In force">
      <button type="button" disabled=${busy || wrong || checked === null} onClick=${tryThem}>${busy === 'try' ? 'Trying…' : 'Try on the last hour'}</button>
      <span class="spring" />
      <label>From <input type="text" placeholder="now" value=${from} spellcheck=${false} onInput=${(e) => setFrom(e.target.value)} size="24" /></label>
      <button type="button" class="primary" disabled=${busy || wrong || checked === null || !changed} onClick=${put}>${busy === 'put' ? 'Putting in force…' : 'Put in force'}</button>
    </section>
    <${Problem} problem=${problem} />
    ${problem?.code === 'D5215' && html`<button type="button" onClick=${again}>Keep my text, over the rules of now</button>`}
    ${done && html`<${Done} done=${done} />`}
    ${tried && html`<${Tried} tried=${tried} />`}</div>`;
}

function Done({ done }) {
  const others = done.changes.filter((one) => one.change !== 'same');
  return html`<div class="notice good" role="status"><div><p><strong>${done.from ? html`Planned from <${Time} time=${done.from} /> on` : 'In force'}</strong></p>
    ${others.length ? html`<ul>${others.map((one) => html`<li>${one.rule}: ${one.change}${one.why ? `, ${one.why}` : ''}</li>`)}</ul>` : html`<p>Every rule is the same.</p>`}</div></div>`;
}

function Tried({ tried }) {
  const { prefixes, rules } = useServer();
  return html`<section class="card" aria-label="What came of trying"><header class="head"><h2>${tried.changed ? `${counted(tried.changed, 'event')} ${tried.changed === 1 ? 'differs' : 'differ'}` : 'The same events'}</h2>
    <span class="muted"><${Time} time=${tried.since} coarse /> – <${Time} time=${tried.until} coarse />, ${counted(tried.graphs, 'graph')}</span></header>
    <table class="numbers"><thead><tr><th scope="col">Rule</th><th scope="col">In force</th><th scope="col">Tried</th><th scope="col">New</th><th scope="col">Gone</th></tr></thead>
    <tbody>${tried.rules.map((one) => html`<tr><th scope="row">${one.rule}</th><td>${count(one.deployed)}</td><td>${count(one.tried)}</td><td>${one.added ? `+${count(one.added)}` : '–'}</td><td>${one.removed ? `−${count(one.removed)}` : '–'}</td></tr>`)}</tbody></table>
    ${tried.differences.length > 0 && html`<ul class="differences">${tried.differences.slice(0, 100).map((one) => html`<li class=${one.change > 0 ? 'new' : 'gone'}><span class="sign">${one.change > 0 ? '+' : '−'}</span>
      <${Time} time=${one.time} /> <span class=${`rule ${colourOf(rules, one.rule)}`}>${one.rule}</span> <${Values} values=${one.bindings} prefixes=${prefixes} /></li>`)}</ul>`}</section>`;
}

