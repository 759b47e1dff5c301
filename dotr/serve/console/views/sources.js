// What comes in and goes out: partitions, what waits, outputs, and what was refused or late.
import { html, useEffect, useRef, useState } from '../vendor/preact.js';
import { at, get, send } from '../api.js';
import { useServer } from '../context.js';
import { Busy, Empty, Problem, Time } from '../components/notes.js';
import { place } from '../components/proof.js';
import { count } from '../components/times.js';

const problemOf = (error) => error.problem ?? { detail: error.message };

export function Sources() {
  const { status, refresh } = useServer();
  const [problem, setProblem] = useState(null);
  const pause = async () => {
    try { await send(status.paused ? '/v1/resume' : '/v1/pause', { method: 'POST' }); setProblem(null); } catch (error) { setProblem(problemOf(error)); }
    await refresh();
  };
  if (!status) return html`<${Busy} />`;
  const names = [...new Set([...(status.streams ?? []), ...status.partitions.map((one) => one.source), ...status.subscriptions.map((one) => one.name)])];
  const rows = names.flatMap((name) => {
    const own = status.partitions.filter((one) => one.source === name);
    return (own.length ? own : [{ source: name, partition: name, latest: null, graphs: 0, idle: true }]).map((one) => ({ ...one,
      waiting: status.inbox[name] ?? 0, link: status.subscriptions.find((link) => link.name === name) }));
  });
  return html`<div class="page"><header class="head"><h1>Sources</h1>
      <button type="button" onClick=${pause}>${status.paused ? 'Resume' : 'Pause'}</button></header>
    <${Problem} problem=${problem} />
    ${status.reasons.length > 0 && html`<div class="notice" role="status"><ul>${status.reasons.map((one) => html`<li>${one}</li>`)}</ul></div>`}
    <div class="figures"><${Figure} name="Watermark" value=${html`<${Time} time=${status.watermark} coarse />`} /><${Figure} name="Graphs" value=${count(status.graphs)} />
      <${Figure} name="Late" value=${count(status.late)} bad=${status.late > 0} /><${Figure} name="Refused" value=${count(status.refused)} bad=${status.refused > 0} /></div>
    <section class="card" aria-label="Sources"><div class="scroll" tabindex="0" role="region" aria-label="Table of sources"><table class="numbers"><thead><tr><th scope="col">Source</th><th scope="col">Partition</th><th scope="col">Latest graph</th><th scope="col">Graphs</th><th scope="col">Waiting</th><th scope="col">State</th></tr></thead>
      <tbody>${rows.map((one) => html`<tr><th scope="row">${one.source}</th><td>${one.partition === one.source ? '–' : one.partition}</td><td><${Time} time=${one.latest} /></td><td>${count(one.graphs)}</td><td>${count(one.waiting)}</td>
        <td>${one.link && !one.link.connected ? html`<span class="bad">${one.link.why || 'not connected'}</span>` : one.graphs === 0 ? 'nothing since the start' : one.idle ? 'idle, others do not wait' : 'active'}</td></tr>`)}</tbody></table></div></section>
    ${status.outputs.length > 0 && html`<section class="card" aria-label="Outputs"><h2>Outputs</h2><div class="scroll" tabindex="0" role="region" aria-label="Table of outputs"><table class="numbers"><thead><tr><th scope="col">Output</th><th scope="col">Delivered</th><th scope="col">Waiting</th><th scope="col">State</th></tr></thead>
      <tbody>${status.outputs.map((one) => html`<tr><th scope="row">${one.output}</th><td>${count(one.delivered)}</td><td>${count(one.waiting)}</td><td>${one.gone ? 'wants no more' : one.failures ? html`<span class="bad">failed ${count(one.failures)} times: ${one.error}</span>` : 'delivers'}</td></tr>`)}</tbody></table></div></section>`}
    <${Letters} changes=${status.refused + status.late} streams=${status.streams ?? []} /></div>`;
}

const Figure = ({ name, value, bad }) => html`<div class="figure"><span class="muted">${name}</span><strong class=${bad ? 'bad' : ''}>${value}</strong></div>`;

/** Documents that were refused and graphs that came late, with what to do with them. */
function Letters({ changes, streams }) {
  const [kind, setKind] = useState('');
  const [found, setFound] = useState(null);
  const [next, setNext] = useState(null);
  const [problem, setProblem] = useState(null);
  const [said, setSaid] = useState('');
  const newest = useRef(0);
  const load = async () => {
    const own = (newest.current += 1);
    try {
      const page = await get(at('/v1/dead-letters', { kind }));
      if (own !== newest.current) return; // another kind was chosen, or more came
      setFound(page.letters);
      setNext(page.next);
      setProblem(null);
    } catch (error) { if (own === newest.current) setProblem(problemOf(error)); }
  };
  useEffect(() => { load(); }, [kind, changes]);
  const more = async () => { const page = await get(next); setFound([...found, ...page.letters]); setNext(page.next); };
  const act = async (one, method, path, stream) => {
    try {
      await send(at(path, { stream }), { method });
      setSaid(method === 'POST' ? `Letter ${one.number} is given to its stream again.` : `Letter ${one.number} is forgotten.`);
      setProblem(null);
    } catch (error) { setProblem(problemOf(error)); }
    await load();
  };
  return html`<section class="card letters" aria-label="Dead letters"><header class="head"><h2>Dead letters</h2>
      <div class="tabs" role="group" aria-label="Kind">${[['', 'All'], ['refused', 'Refused'], ['late', 'Late']].map(([name, title]) => html`<button type="button" aria-pressed=${kind === name} onClick=${() => setKind(name)}>${title}</button>`)}</div></header>
    <p role="status" class="muted">${said}</p>
    <${Problem} problem=${problem} retry=${load} />
    ${!found ? !problem && html`<${Busy} />` : !found.length ? html`<p class="muted">None. A document that cannot be read, or a graph that comes late, is kept here with its reason.</p>`
    : html`<ul>${found.map((one) => html`<li key=${one.number}><div class="head"><span><strong>${one.number}</strong> <span class="badge">${one.kind}</span> <span>${place(one.place)}</span> <span class="muted">${one.code}</span></span>
        <span class="buttons"><button type="button" disabled=${!streams.length} onClick=${() => act(one, 'POST', `/v1/dead-letters/${one.number}/retry`, streams.includes(one.source) ? '' : streams[0])}>Retry</button>
        <button type="button" class="danger" onClick=${() => act(one, 'DELETE', `/v1/dead-letters/${one.number}`)}>Forget</button></span></div>
        <pre class="why" tabindex="0">${one.diagnostic}</pre>
        <details class="graph"><summary>The document${one.format ? `, ${one.format}` : ''}</summary><pre tabindex="0">${one.document ?? one.base64}</pre></details></li>`)}</ul>
      ${next && html`<button type="button" onClick=${more}>Show more</button>`}`}</section>`;
}
