// How the rules are evaluated.
import { html, useEffect, useState } from '../vendor/preact.js';
import { get } from '../api.js';
import { colourOf, useServer } from '../context.js';
import { Busy, Empty, Problem } from '../components/notes.js';
import { Plan as Graph, graphOf } from '../components/plan.js';
import { count } from '../components/times.js';

const STATES = 40;

export function Plan() {
  const { rules } = useServer();
  const [plan, setPlan] = useState(null);
  const [problem, setProblem] = useState(null);
  const [picked, setPicked] = useState(null);
  const load = async () => {
    try { setPlan(await get('/v1/plan')); setProblem(null); } catch (error) { setProblem(error.problem ?? { detail: error.message }); }
  };
  useEffect(() => { load(); }, [rules.join()]);
  const node = plan && picked && graphOf(plan).nodes.find((one) => one.id === picked);
  return html`<div class="page wide"><header class="head"><h1>Plan</h1></header>
    <${Problem} problem=${problem} retry=${load} />
    ${!plan ? !problem && html`<${Busy} what="Compiling" />` : !plan.rules.length ? html`<${Empty} title="No rules yet"><p>The plan shows how rules are evaluated.</p><a class="button" href="#/rules/edit">Write the first rule</a><//>` : html`
      <section class="card"><${Graph} plan=${plan} picked=${picked} onPick=${(one) => setPicked(one.id === picked ? null : one.id)} colour=${(name) => colourOf(rules, name)} /></section>
      <section class="card" aria-live="polite" aria-label="Details">${node ? html`<${Details} node=${node} />` : html`<p class="muted">Choose a query or a rule to see how it is evaluated.</p>`}</section>
      <section class="card" aria-label="What lasts"><h2>What lasts</h2>${plan.lasting.length ? html`<dl class="facts">${plan.lasting.map((one) => html`<dt><code>${one.what}</code></dt><dd>${one.bound}</dd>`)}</dl>` : html`<p class="muted">Nothing lasts: rules see each graph as it passes.</p>`}
        <p class="muted">Background: ${count(plan.background.triples)} triples. Datalog: ${count(plan.datalog.rules)} rules, entailment ${plan.datalog.entailment}.</p></section>`}</div>`;
}

function Details({ node }) {
  const { of } = node;
  if (of?.trigger?.pattern) return html`<${Sequence} name=${node.name} of=${of} />`;
  if (node.kind === 'rule') {
    return html`<h2>${node.name}</h2><dl class="facts"><dt>Looks back</dt><dd>${of.horizon ?? 'for ever'}</dd>${of.where && html`<dt>Where</dt><dd><code>${of.where}</code></dd>`}
      ${of.trigger && html`<dt>Trigger</dt><dd><code>${of.trigger.stream}</code></dd>`}</dl>
      ${of.conjuncts.length > 0 && html`<div class="scroll" tabindex="0" role="region" aria-label="Conjuncts"><table class="numbers left"><thead><tr><th scope="col">Conjunct</th><th scope="col">Window</th><th scope="col">Found by</th><th scope="col">Keeps</th></tr></thead>
      <tbody>${of.conjuncts.map((one) => html`<tr><th scope="row">${one.choice} ${one.name}</th><td><code>${one.interval}</code></td><td><code>${[...(one.keys ?? []), one.condition].filter(Boolean).join(' && ') || 'all'}</code></td><td>${one.keeps}</td></tr>`)}</tbody></table></div>`}`;
  }
  if (!of) return html`<h2>${node.name}</h2><p class="muted">Facts of this stream come from the rules of what holds.</p>`;
  return html`<h2>${node.name}</h2><dl class="facts"><dt>Evaluated by</dt><dd>${of.engine}${of.reason ? `: ${of.reason}` : ''}</dd><dt>For</dt><dd>${of.rules.join(', ')}</dd></dl>
    <pre tabindex="0">${of.plans.join('\n')}</pre>`;
}

/** A sequence: what its rows are, and its automaton, whose states are numbered in the order of preference. */
function Sequence({ name, of }) {
  const { trigger } = of;
  return html`<h2>${name}</h2><dl class="facts"><dt>Pattern</dt><dd><code>${trigger.pattern}</code></dd>
      <dt>Of</dt><dd>${trigger.sources.map((one) => one.stream).join(', ')}</dd>
      ${trigger.per.length > 0 && html`<dt>Per</dt><dd><code>${trigger.per.map((one) => `?${one}`).join(', ')}</code></dd>`}
      <dt>Within</dt><dd>${trigger.within}${trigger.gap && `, neighbours at most ${trigger.gap} apart`}</dd>
      <dt>Looks back</dt><dd>${of.horizon ?? 'for ever'}</dd><dt>Keeps</dt><dd>${trigger.keeps}</dd></dl>
    <div class="scroll" tabindex="0" role="region" aria-label="States"><table class="numbers left"><thead><tr><th scope="col">State</th><th scope="col">Waits for</th><th scope="col">Then</th></tr></thead>
      <tbody><tr><th scope="row">begins</th><td /><td>${trigger.begins.join(', ')}</td></tr>
      ${trigger.automaton.slice(0, STATES).map((one, n) => html`<tr><th scope="row">${n + 1}</th><td>${one.element}</td><td>${one.then.join(', ')}</td></tr>`)}</tbody></table></div>
    ${trigger.automaton.length > STATES && html`<p class="muted">and ${count(trigger.automaton.length - STATES)} more states</p>`}`;
}
