// What holds, now or at a time that is kept, by subject.
import { html, useEffect, useRef, useState } from '../vendor/preact.js';
import { at, send } from '../api.js';
import { useServer } from '../context.js';
import { Busy, Empty, Problem, Time } from '../components/notes.js';
import { Facts as Table, quads } from '../components/table.js';
import { counted } from '../components/times.js';

const QUICK = 400;

export function Facts() {
  const { status, prefixes } = useServer();
  const [found, setFound] = useState(null);
  const [seen, setSeen] = useState(null);
  const [problem, setProblem] = useState(null);
  const [sought, setSought] = useState('');
  const [time, setTime] = useState('');
  const [asked, setAsked] = useState('');
  const took = useRef(0);
  const latest = useRef(0);
  const load = async () => {
    const began = performance.now();
    const number = ++latest.current; // an answer that was overtaken is dropped
    try {
      const response = await send(at('/v1/state', { at: asked }), { headers: { Accept: 'application/n-quads' } });
      const facts = quads(await response.text());
      if (number !== latest.current) return;
      setFound(facts);
      setSeen(response.headers.get('dotr-watermark'));
      setProblem(null);
    } catch (error) {
      if (number !== latest.current) return;
      setProblem(error.problem ?? { detail: error.message });
    }
    took.current = performance.now() - began;
  };
  useEffect(() => { load(); }, [asked]);
  // what holds now is read again after a commit, where that is quick
  useEffect(() => { if (found && !asked && took.current < QUICK) load(); }, [status?.commit]);
  return html`<div class="page"><header class="head"><h1>Facts</h1>
      <form class="ask" onSubmit=${(e) => { e.preventDefault(); setAsked(time.trim()); }}>
        <label>At <input type="text" name="at" placeholder="now" value=${time} spellcheck=${false} onInput=${(e) => setTime(e.target.value)} size="24" /></label>
        <button type="submit">Show</button></form></header>
    <${Problem} problem=${problem} retry=${load} />
    ${!found ? !problem && html`<${Busy} /> ` : !found.length ? html`<${Empty} title="Nothing holds"><p>Facts that last come from the background, from HOLD and from Datalog. Rules without these look at graphs only as they pass.</p><//>`
    : html`<section class="card" aria-label="What holds"><header class="head"><span class="muted">${counted(found.length, 'fact')}${seen ? html` as of <${Time} time=${seen} coarse />` : ''}</span>
        <input type="search" placeholder="Filter" aria-label="Filter facts" value=${sought} onInput=${(e) => setSought(e.target.value)} /></header>
        <${Table} found=${found} prefixes=${prefixes} sought=${sought.trim()} /></section>`}</div>`;
}
