// Rates and latencies of the last hour.
import { html, useEffect, useState } from '../vendor/preact.js';
import { get } from '../api.js';
import { useServer } from '../context.js';
import { Chart } from '../components/chart.js';
import { Busy, Problem } from '../components/notes.js';
import { count } from '../components/times.js';

const rate = (value) => (value >= 100 ? count(value) : String(Math.round(value * 10) / 10));
const seconds = (value) => (value >= 1 ? `${Math.round(value * 10) / 10} s` : value >= 0.01 || value === 0 ? `${Math.round(value * 1000)} ms` : `${Math.round(value * 10000) / 10} ms`);

export function Load() {
  const { status } = useServer();
  const [found, setFound] = useState(null);
  const [problem, setProblem] = useState(null);
  const load = async () => {
    try { setFound(await get('/v1/samples')); setProblem(null); } catch (error) { setProblem(error.problem ?? { detail: error.message }); }
  };
  useEffect(() => {
    load();
    const timer = setInterval(() => { if (!document.hidden) load(); }, 5000);
    return () => clearInterval(timer);
  }, []);
  const line = (name, colour, key) => ({ name, colour, values: found[key] });
  return html`<div class="page"><header class="head"><h1>Load</h1><span class="muted">the last hour, UTC; version ${status?.version}</span></header>
    <${Problem} problem=${problem} retry=${load} />
    ${!found ? !problem && html`<${Busy} />` : html`<div class="charts">
      <${Chart} title="In, a second" times=${found.time} show=${rate} series=${[line('documents', 'c0', 'documents'), line('graphs', 'c2', 'graphs')]} />
      <${Chart} title="Events, a second" times=${found.time} show=${rate} series=${[line('events', 'c6', 'events')]} />
      <${Chart} title="From arrival to commit" times=${found.time} show=${seconds} series=${[line('median', 'c0', 'p50'), line('99th of 100', 'c1', 'p99')]} />
      <${Chart} title="Documents that wait" times=${found.time} show=${rate} series=${[line('waiting', 'c5', 'waiting')]} />
      <${Chart} title="A commit takes" times=${found.time} show=${seconds} series=${[line('median', 'c7', 'commit')]} /></div>`}</div>`;
}
