// RDF terms as short text. Terms come in N-Triples form ("<urn:a>") or as objects of JSON results.
import { html } from '../vendor/preact.js';

const KNOWN = {
  rdf: 'http://www.w3.org/1999/02/22-rdf-syntax-ns#',
  rdfs: 'http://www.w3.org/2000/01/rdf-schema#',
  owl: 'http://www.w3.org/2002/07/owl#',
  xsd: 'http://www.w3.org/2001/XMLSchema#',
  prov: 'http://www.w3.org/ns/prov#',
};
const XSD = KNOWN.xsd;
const TYPE = `${KNOWN.rdf}type`;
const BARE = new Set(['integer', 'decimal', 'double', 'boolean'].map((name) => XSD + name));
const ESCAPES = { t: '\t', n: '\n', r: '\r', b: '\b', f: '\f', '"': '"', "'": "'", '\\': '\\' };

/** {kind: iri | literal | blank, value, datatype, language} of either form. Lists are arrays of terms. */
export function parsed(term) {
  if (term !== null && typeof term === 'object') {
    const kind = { uri: 'iri', bnode: 'blank' }[term.type] ?? (term.type === 'triple' ? 'triple' : 'literal');
    const value = kind === 'triple' ? JSON.stringify(term.value) : String(term.value);
    return { kind, value, datatype: term.datatype ?? '', language: term['xml:lang'] ?? '' };
  }
  const text = String(term);
  if (text.startsWith('<') && text.endsWith('>') && !text.startsWith('<<')) {
    return { kind: 'iri', value: text.slice(1, -1), datatype: '', language: '' };
  }
  if (text.startsWith('_:')) return { kind: 'blank', value: text.slice(2), datatype: '', language: '' };
  const found = /^"((?:[^"\\]|\\.)*)"(?:\^\^<([^>]*)>|@([A-Za-z0-9-]+))?$/s.exec(text);
  if (!found) return { kind: 'literal', value: text, datatype: '', language: '' };
  const value = found[1].replace(/\\(?:u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|(.))/gs, (_, four, eight, one) =>
    one === undefined ? String.fromCodePoint(parseInt(four ?? eight, 16)) : (ESCAPES[one] ?? one));
  return { kind: 'literal', value, datatype: found[2] ?? '', language: found[3] ?? '' };
}

/** An IRI with a prefix where one fits: that of the longest namespace. */
export function short(iri, prefixes = {}) {
  if (iri === TYPE) return 'a';
  let best = null;
  for (const names of [KNOWN, prefixes]) {
    for (const [name, space] of Object.entries(names)) {
      if (space && iri.startsWith(space) && (best === null || space.length >= best.space.length)) {
        const local = iri.slice(space.length);
        if (/^[\p{L}\p{N}_][\p{L}\p{N}_.-]*$/u.test(local)) best = { name, space, local };
      }
    }
  }
  if (best !== null) return `${best.name}:${best.local}`;
  return `<${iri}>`;
}

/** A term in one line. */
export function text(term, prefixes = {}) {
  if (Array.isArray(term)) return `[${term.map((one) => text(one, prefixes)).join(', ')}]`;
  const one = parsed(term);
  if (one.kind === 'iri') return short(one.value, prefixes);
  if (one.kind === 'blank') return `_:${one.value.length > 12 ? `${one.value.slice(0, 10)}…` : one.value}`;
  if (one.kind === 'triple') return one.value;
  if (BARE.has(one.datatype)) return one.value;
  const quoted = `"${one.value}"`;
  if (one.language) return `${quoted}@${one.language}`;
  return one.datatype && one.datatype !== `${XSD}string` ? `${quoted}^^${short(one.datatype, prefixes)}` : quoted;
}

/** The whole term, for a tooltip. */
export function whole(term) {
  if (Array.isArray(term)) return `[${term.map(whole).join(', ')}]`;
  const one = parsed(term);
  if (one.kind === 'iri') return `<${one.value}>`;
  if (one.kind === 'blank') return `_:${one.value}`;
  return `"${one.value}"${one.language ? `@${one.language}` : one.datatype ? `^^<${one.datatype}>` : ''}`;
}

const SEAM = /(?<=.[:/#_.-])(?=[^:/#_.\s-])|(?<=\p{Ll})(?=\p{Lu})/u;

/** A name with the places where it may go on in the next line: after punctuation, before a capital letter. */
function Pieces({ name }) {
  const [first, ...rest] = name.split(SEAM);
  return html`${first}${rest.map((piece) => html`<wbr />${piece}`)}`;
}

/** A term, as text alone: what it says is never markup and never a link. `cell`: in a column of its own, where a long name
 *  has several lines. */
export function Term({ term, prefixes, cell = false }) {
  const kind = Array.isArray(term) ? 'list' : parsed(term).kind;
  const shown = text(term, prefixes);
  return html`<span class=${`term ${kind}`} title=${whole(term)}>${cell && kind === 'iri' ? html`<${Pieces} name=${shown} />` : shown}</span>`;
}

/** Variables and their values, in one line. */
export function Values({ values, prefixes }) {
  return html`<span class="values">${Object.entries(values ?? {}).map(([name, term]) => html`
    <span class="value"><span class="name">${name}</span> <${Term} term=${term} prefixes=${prefixes} /></span> `)}
  </span>`;
}
