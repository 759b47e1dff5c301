// The plan as a graph: what queries look for, the rules that wait for their answers, rules that read rules.
import { html } from '../vendor/preact.js';

const WIDE = 190;
const HIGH = 44;
const ACROSS = 170;
const SAID = 76;
const DOWN = 16;

/** Nodes and edges of what `/v1/plan` answers. */
export function graphOf(plan) {
  const nodes = new Map();
  const edges = [];
  const rules = new Set(plan.rules.map((rule) => rule.name));
  const queries = new Map(plan.queries.map((query) => [query.name, query]));
  const streams = (stream) => {
    const name = stream.replace(/^[ID]STREAM /, '');
    if (!rules.has(name) && !nodes.has(`q ${name}`)) nodes.set(`q ${name}`, { id: `q ${name}`, kind: queries.has(name) ? 'query' : 'stream', name, of: queries.get(name) ?? null });
    return rules.has(name) ? `r ${name}` : `q ${name}`;
  };
  for (const rule of plan.rules) nodes.set(`r ${rule.name}`, { id: `r ${rule.name}`, kind: 'rule', name: rule.name, of: rule });
  for (const rule of plan.rules) {
    const triggers = rule.trigger ? (rule.trigger.sources ?? [rule.trigger]) : [];
    const parts = [...triggers.map((one) => ({ ...one, choice: 'trigger' })), ...rule.conjuncts];
    for (const part of parts) {
      if (part.stream) edges.push({ from: streams(part.stream), to: `r ${rule.name}`, label: part.choice });
    }
  }
  return { nodes: [...nodes.values()], edges };
}

/** Places of nodes: in layers by their longest way from the left, ordered by where their neighbours are. An edge
 * over several layers has a point in each of them (`through`), with room of its own between the nodes. */
export function layout({ nodes, edges }) {
  const layer = new Map(nodes.map((node) => [node.id, node.kind === 'rule' ? 1 : 0]));
  for (let turn = 0; turn < nodes.length; turn += 1) {
    let moved = false;
    for (const { from, to } of edges) {
      if (from !== to && layer.get(to) <= layer.get(from) && layer.get(from) + 1 <= nodes.length) {
        if (turn < nodes.length - 1) { layer.set(to, layer.get(from) + 1); moved = true; }
      }
    }
    if (!moved) break;
  }
  const used = [...new Set(layer.values())].sort((a, b) => a - b);
  const columns = used.map((n) => nodes.filter((node) => layer.get(node.id) === n).map((node) => node.id));
  const of = new Map(columns.flatMap((column, n) => column.map((id) => [id, n])));
  const through = edges.map(({ from, to }, n) => {
    const points = [];
    for (let c = of.get(from) + 1; c < of.get(to); c += 1) { points.push(`p ${n} ${c}`); columns[c].push(`p ${n} ${c}`); }
    return points;
  });
  const links = edges.flatMap(({ from, to }, n) => {
    const all = [from, ...through[n], to];
    return all.slice(1).map((id, m) => ({ from: all[m], to: id }));
  });
  const place = new Map();
  const number = () => columns.forEach((column) => column.forEach((id, n) => place.set(id, n)));
  number();
  for (let turn = 0; turn < 4; turn += 1) {
    for (const column of turn % 2 ? [...columns].reverse() : columns) {
      const centre = new Map(column.map((id) => {
        const near = links.filter((edge) => (edge.from === id) !== (edge.to === id)).map((edge) => place.get(edge.from === id ? edge.to : edge.from));
        return [id, near.length ? near.reduce((a, b) => a + b, 0) / near.length : place.get(id)];
      }));
      column.sort((a, b) => centre.get(a) - centre.get(b));
      number();
    }
  }
  const room = (id) => (of.has(id) ? HIGH : 0) + DOWN;
  const heights = columns.map((column) => column.reduce((sum, id) => sum + room(id), -DOWN));
  const height = Math.max(HIGH, ...heights);
  const at = new Map();
  columns.forEach((column, n) => {
    let y = (height - heights[n]) / 2;
    for (const id of column) { at.set(id, { x: n * (WIDE + ACROSS), y }); y += room(id); }
  });
  return { at, through, width: columns.length * (WIDE + ACROSS) - ACROSS, height };
}

/** What rules do with the facts of a node, beside what they trigger: [[edge, words]], one for each node. */
function labels(edges) {
  const found = new Map();
  for (const edge of edges) {
    if (edge.label === 'trigger' || edge.from === edge.to) continue;
    const [, words] = found.get(edge.from) ?? [edge, new Set()];
    found.set(edge.from, [edge, words.add(edge.label.replace(/\(.*/, ''))]);
  }
  return [...found.values()].map(([edge, words]) => [edge, [...words].join(', ')]);
}

const shortened = (name) => (name.length > 24 ? `${name.slice(0, 23)}…` : name);
const about = ({ kind, of }) => {
  const what = kind === 'rule' && of.trigger?.pattern ? 'sequence' : kind;
  return kind === 'rule' && of.horizon ? `${what}, looks back ${of.horizon}` : what;
};

/** The graph. `colour(name)` is the class of a rule; `onPick(node)` when one is chosen. */
export function Plan({ plan, picked, onPick, colour }) {
  const graph = graphOf(plan);
  const { at, through, width, height } = layout(graph);
  const bend = (x, y, x2, y2) => `C${(x + x2) / 2} ${y} ${(x + x2) / 2} ${y2} ${x2} ${y2}`;
  const curve = ({ from, to }, n) => {
    const [a, b] = [at.get(from), at.get(to)];
    if (from === to) return `M${a.x + WIDE - 30} ${a.y + HIGH}c0 18 30 18 30 0`;
    let [x, y] = [a.x + WIDE, a.y + HIGH / 2];
    const [x2, y2, low] = [b.x, b.y + HIGH / 2, height + 12];
    if (x2 <= a.x) return `M${x} ${y}C${x + 60} ${y} ${x + 60} ${low} ${x} ${low}H${x2}C${x2 - 60} ${low} ${x2 - 60} ${y2} ${x2} ${y2}`;
    let path = `M${x} ${y}H${x + SAID}`;
    x += SAID;
    for (const point of through[n].map((id) => at.get(id))) {
      path += `${bend(x, y, point.x, point.y)}H${point.x + WIDE}`;
      [x, y] = [point.x + WIDE, point.y];
    }
    return path + bend(x, y, x2, y2);
  };
  const onKey = (node) => (event) => {
    if (event.key === 'Enter' || event.key === ' ') { event.preventDefault(); onPick(node); }
  };
  const near = (edge) => picked && (edge.from === picked || edge.to === picked);
  return html`<div class="scroll plan-box" tabindex="0" role="region" aria-label="Plan"><svg class="plan" width=${width + 8} height=${height + 28} viewBox=${`-4 -8 ${width + 8} ${height + 28}`}>
    ${graph.edges.map((edge, n) => html`<path class=${`edge ${near(edge) ? 'near' : ''} ${edge.label === 'NOT' ? 'not' : ''}`} d=${curve(edge, n)}><title>${edge.label}</title></path>`)}
    ${labels(graph.edges).map(([{ from }, label]) => html`<text class="edge-label" x=${at.get(from).x + WIDE + 8} y=${at.get(from).y + HIGH / 2 - 5}>${label}</text>`)}
    ${graph.nodes.map((node) => html`<g class=${`node ${node.kind} ${node.kind === 'rule' ? colour(node.name) : ''} ${picked === node.id ? 'picked' : ''}`} transform=${`translate(${at.get(node.id).x} ${at.get(node.id).y})`}
      role="button" tabindex="0" aria-pressed=${picked === node.id} aria-label=${`${shortened(node.name)} ${about(node)}`} onClick=${() => onPick(node)} onKeyDown=${onKey(node)}>
      <rect width=${WIDE} height=${HIGH} rx="7" /><text x="14" y="19">${shortened(node.name)}</text>${' '}
      <text class="kind" x="14" y="35">${about(node)}</text></g>`)}
  </svg></div>`;
}
