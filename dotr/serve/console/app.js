// The page: where one is, what the server says of itself, and the view that is open.
import { html, render, useEffect, useMemo, useRef, useState } from './vendor/preact.js';
import { get, onTokenNeeded, setToken } from './api.js';
import { Context, route } from './context.js';
import { Live } from './live.js';
import { Problem, Time } from './components/notes.js';
import { Events } from './views/events.js';

const VIEWS = [
  ['events', 'Events'], ['rules', 'Rules'], ['facts', 'Facts'], ['query', 'Query'], ['sources', 'Sources'], ['load', 'Load'], ['plan', 'Plan'],
];
const LOOK = 2000;

/** Views that are loaded when they are first opened. */
const LATER = {
  rules: () => import('./views/rules.js').then((one) => one.Rules),
  facts: () => import('./views/facts.js').then((one) => one.Facts),
  query: () => import('./views/query.js').then((one) => one.Query),
  sources: () => import('./views/sources.js').then((one) => one.Sources),
  load: () => import('./views/load.js').then((one) => one.Load),
  plan: () => import('./views/plan.js').then((one) => one.Plan),
};
const loaded = new Map();

/** The component of a view; null while it is loaded. */
function useView(name) {
  const [, draw] = useState(0);
  const [failed, setFailed] = useState(false);
  useEffect(() => {
    if (!LATER[name] || loaded.has(name)) return;
    LATER[name]().then((one) => { loaded.set(name, one); setFailed(false); draw((n) => n + 1); }, () => setFailed(true));
  }, [name]);
  if (failed && !loaded.has(name)) return () => html`<${Problem} problem=${{ detail: 'This page could not be loaded.', hint: 'Reload when the server answers.' }} />`;
  return LATER[name] ? loaded.get(name) ?? null : Events;
}

function useRoute() {
  const [now, setNow] = useState(() => route(location.hash));
  useEffect(() => {
    const look = () => setNow(route(location.hash));
    addEventListener('hashchange', look);
    look(); // it may have changed between the first picture and this
    return () => removeEventListener('hashchange', look);
  }, []);
  return now;
}

/** Events as they come, for any number of views. */
function useLive(onState, onMissed) {
  return useMemo(() => {
    const readers = new Set();
    const live = new Live({
      onEvents: (rows) => readers.forEach((read) => read(rows)),
      onState,
      onMissed,
    });
    return {
      start: (last) => live.start(last),
      stop: () => live.stop(),
      last: () => live.last ?? 0,
      subscribe: (read) => { readers.add(read); return () => readers.delete(read); },
    };
  }, []);
}

function App() {
  const now = useRoute();
  const [needed, setNeeded] = useState(null);
  const [state, setState] = useState('starting');
  const [status, setStatus] = useState(null);
  const [deployed, setDeployed] = useState(null);
  const [problem, setProblem] = useState(null);
  const begun = useRef(false);
  const digest = useRef('');
  const [era, setEra] = useState(0); // a view begins again where its events have a gap, or are of another deployment
  const live = useLive(setState, () => setEra((n) => n + 1));

  const refresh = async () => {
    const known = live.last();
    try {
      const [found, own] = await Promise.all([get('/v1/status'), get('/v1/rules')]);
      setStatus(found);
      setDeployed(own);
      digest.current = own.digest;
      setProblem(null);
      setNeeded(null);
      if (begun.current && found.outbox < known) { begun.current = false; setEra((n) => n + 1); }
      if (!begun.current) { begun.current = true; live.start(found.outbox); }
    } catch (error) {
      if (error.status === 401 || error.problem?.code === 'D4142') {
        begun.current = false;
        live.stop();
        setNeeded(error.problem);
      } else setProblem(error.problem);
    }
  };
  useEffect(() => {
    onTokenNeeded(setNeeded);
    refresh();
    const timer = setInterval(async () => {
      if (document.hidden || !begun.current) return;
      try {
        const found = await get('/v1/status');
        if (found.digest === digest.current) setStatus(found);
        else await refresh(); // others changed the rules
      } catch { /* the connection of events says so */ }
    }, LOOK);
    return () => clearInterval(timer);
  }, []);
  useEffect(() => { if (state === 'live') refresh(); }, [state]);
  useEffect(() => { if (!begun.current && problem) { const timer = setTimeout(refresh, LOOK); return () => clearTimeout(timer); } return undefined; }, [problem]);

  const server = {
    status, live, state, refresh, deployed,
    rules: deployed?.rules ?? [],
    sequences: deployed?.sequences ?? [],
    emitting: (deployed?.rules ?? []).filter((name) => !deployed.private.includes(name)),
    heads: deployed?.heads ?? [],
    texts: deployed?.texts ?? {},
    prefixes: deployed?.prefixes ?? {},
    integer: typeof (status?.latest ?? 0) === 'number',
  };
  const View = useView(now.view);
  return html`<${Context.Provider} value=${server}>
    <a class="skip" href="#main" onClick=${(e) => { e.preventDefault(); document.getElementById('main').focus(); }}>Skip to the content</a>
    <nav aria-label="Views"><a class="brand" href="#/events">dotr</a>
      <ul>${VIEWS.map(([name, title]) => html`<li><a href=${`#/${name}`} aria-current=${now.view === name || (name === 'events' && !VIEWS.some(([one]) => one === now.view)) ? 'page' : undefined}>${title}</a></li>`)}</ul>
      <${State} state=${state} status=${status} /></nav>
    <main id="main" tabindex="-1">${needed ? html`<${TokenForm} problem=${needed} onToken=${(text) => { begun.current = false; setToken(text); refresh(); }} />`
    : deployed && View ? html`<${View} key=${`${now.view} ${era}`} ...${now} />` : problem ? html`<${Problem} problem=${problem} retry=${refresh} />` : null}</main>
  <//>`;
}

function State({ state, status }) {
  const words = { live: 'Live', waiting: 'Reconnecting…', starting: 'Connecting…', refused: 'Not allowed' };
  const paused = status?.paused && state === 'live';
  return html`<div class="state"><span role="status"><span class=${`light ${paused ? 'paused' : state}`} /> ${paused ? 'Paused' : words[state]}</span>
    ${(status?.watermark ?? null) !== null && html`<span class="mark">up to <${Time} time=${status.watermark} coarse /></span>`}</div>`;
}

function TokenForm({ problem, onToken }) {
  const [text, setText] = useState('');
  const field = useRef(null);
  useEffect(() => field.current.focus(), []);
  return html`<form class="token card" onSubmit=${(e) => { e.preventDefault(); onToken(text.trim()); }}>
    <h1>This server needs a token</h1>
    <p>It stays in this tab, and is forgotten when the tab is closed. <code>dotr serve token new NAME --scopes read</code> makes one; rules need the scope <code>rules</code>, dead letters <code>admin</code>.</p>
    ${problem.code && problem.detail !== 'this needs a token' && html`<${Problem} problem=${problem} />`}
    <label>Token <input ref=${field} type="password" autocomplete="off" value=${text} onInput=${(e) => setText(e.target.value)} /></label>
    <button type="submit" class="primary" disabled=${!text.trim()}>Open the console</button></form>`;
}

const box = document.getElementById('app');
box.replaceChildren(); // the frame that was painted first
render(html`<${App} />`, box);
