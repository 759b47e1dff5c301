// A SPARQL query over what holds.
import { html, useState } from '../vendor/preact.js';
import { at, send } from '../api.js';
import { useServer } from '../context.js';
import { Problem, Time } from '../components/notes.js';
import { Answers } from '../components/table.js';
import { counted } from '../components/times.js';

const KEY = 'dotr-query';
const ACCEPT = 'application/sparql-results+json, text/turtle;q=0.9';

export function Query() {
  const { prefixes } = useServer();
  const start = () => `${Object.entries(prefixes).map(([name, iri]) => `PREFIX ${name}: <${iri}>\n`).join('')}SELECT * WHERE {\n  ?s ?p ?o\n} LIMIT 100\n`;
  const [text, setText] = useState(() => sessionStorage.getItem(KEY) ?? start());
  const [time, setTime] = useState('');
  const [found, setFound] = useState(null);
  const [problem, setProblem] = useState(null);
  const [busy, setBusy] = useState(false);
  const run = async (event) => {
    event?.preventDefault();
    sessionStorage.setItem(KEY, text);
    setBusy(true);
    try {
      const began = performance.now();
      const response = await send(at('/v1/sparql', { at: time.trim() }), { method: 'POST', body: text, headers: { 'Content-Type': 'application/sparql-query', Accept: ACCEPT } });
      const seen = response.headers.get('dotr-watermark');
      const json = response.headers.get('content-type').includes('json');
      const value = json ? await response.json() : await response.text();
      setFound({ value, seen, took: performance.now() - began });
      setProblem(null);
    } catch (error) { setProblem(error.problem ?? { detail: error.message }); setFound(null); }
    setBusy(false);
  };
  const onKeyDown = (event) => { if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) run(event); };
  return html`<div class="page"><header class="head"><h1>Query</h1></header>
    <form class="query" onSubmit=${run}>
      <textarea aria-label="SPARQL query" spellcheck=${false} rows=${Math.min(20, Math.max(7, text.split('\n').length + 1))} value=${text} onInput=${(e) => setText(e.target.value)} onKeyDown=${onKeyDown} />
      <div class="actions"><label>At <input type="text" name="at" placeholder="now" value=${time} spellcheck=${false} onInput=${(e) => setTime(e.target.value)} size="24" /></label>
        <span class="spring" /><span class="muted keys">Ctrl + Enter</span><button type="submit" class="primary" disabled=${busy}>${busy ? 'Running…' : 'Run'}</button></div></form>
    <${Problem} problem=${problem} />
    ${found && html`<section class="card" aria-label="Result"><p class="muted" role="status">${summary(found)}</p>${result(found.value, prefixes)}</section>`}</div>`;
}

function summary({ value, seen, took }) {
  const rows = value.results ? counted(value.results.bindings.length, 'row') : value.boolean !== undefined ? 'Answer' : 'Graph';
  return html`${rows} in ${Math.round(took)} ms${seen ? html`, as of <${Time} time=${seen} coarse />` : ''}`;
}

function result(value, prefixes) {
  if (typeof value === 'string') return html`<pre tabindex="0">${value || 'an empty graph'}</pre>`;
  if (value.boolean !== undefined) return html`<p class="yes-no">${value.boolean ? 'Yes' : 'No'}</p>`;
  if (!value.results.bindings.length) return html`<p class="muted">No row fits the pattern.</p>`;
  return html`<${Answers} variables=${value.head.vars} rows=${value.results.bindings} prefixes=${prefixes} />`;
}
