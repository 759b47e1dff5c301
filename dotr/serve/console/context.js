// What every view needs: the server's status and rules, names of colours, where to go, and the live events.
import { createContext, useContext } from './vendor/preact.js';

export const Context = createContext(null);
export const useServer = () => useContext(Context);

const COLOURS = 8;

/** The class that colours a rule: by its place in the program. */
export function colourOf(rules, name) {
  const place = rules.indexOf(name);
  return place < 0 ? 'other' : `c${place % COLOURS}`;
}

/** A part of a path; as it stands where it cannot be decoded. */
function decoded(part) {
  try { return decodeURIComponent(part); } catch { return part; }
}

/** `#/events/12?x=1` as {view, rest, query}. */
export function route(hash) {
  const [path, query = ''] = hash.replace(/^#\/?/, '').split('?');
  const [view, ...rest] = path.split('/');
  return { view: view || 'events', rest: rest.map(decoded), query: new URLSearchParams(query) };
}

export const go = (hash) => { location.hash = hash; };
