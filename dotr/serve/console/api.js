// All that the console asks of the server. The token is in sessionStorage, and goes in a header alone.

const KEY = 'dotr-token';

/** A refusal, with the server's own words (RFC 9457). */
export class Refused extends Error {
  constructor(status, problem) {
    super(problem.detail ?? problem.title ?? `status ${status}`);
    this.status = status;
    this.problem = problem;
  }
}

let listener = () => undefined;

/** Call a function when a token is needed. */
export const onTokenNeeded = (call) => { listener = call; };

export const token = () => sessionStorage.getItem(KEY) ?? '';
export const setToken = (text) => (text ? sessionStorage.setItem(KEY, text) : sessionStorage.removeItem(KEY));

/** A request; the answer's Response. Raises Refused; a server that does not answer is one of status 0. */
export async function send(path, { method = 'GET', headers = {}, body, signal } = {}) {
  const own = token();
  let response;
  try {
    response = await fetch(path, {
      method, body, signal, cache: 'no-store',
      headers: { ...headers, ...(own ? { Authorization: `Bearer ${own}` } : {}) },
    });
  } catch (error) {
    if (error.name === 'AbortError') throw error;
    throw new Refused(0, { detail: 'The server does not answer.', hint: 'Is it running? This page goes on when it is.' });
  }
  if (response.ok) return response;
  let problem;
  try {
    problem = await response.json();
  } catch {
    problem = { title: response.statusText, detail: `The server answered with ${response.status}.` };
  }
  if (response.status === 401) listener(problem);
  throw new Refused(response.status, problem);
}

/** The JSON of an answer. */
export async function get(path, options = {}) {
  const response = await send(path, { ...options, headers: { Accept: 'application/json', ...options.headers } });
  return response.status === 204 ? null : response.json();
}

/** A path with parameters; what is undefined, null or "" is left out, of an array each is one. */
export function at(path, query) {
  const found = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    for (const one of Array.isArray(value) ? value : [value]) {
      if (one !== undefined && one !== null && one !== '') found.append(name, one);
    }
  }
  const text = found.toString();
  return text ? `${path}?${text}` : path;
}

/** The server-sent events of a path, as {id, event, data}; ends where the connection does. */
export async function* events(path, { lastId, signal, open = () => undefined }) {
  const headers = { Accept: 'text/event-stream', ...(lastId === null ? {} : { 'Last-Event-ID': String(lastId) }) };
  const response = await send(path, { headers, signal });
  open();
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = '';
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const parts = (rest + value).split('\n\n');
    rest = parts.pop();
    const found = parts.map(message).filter((one) => one.data !== '');
    if (found.length) yield found;
  }
}

function message(part) {
  const one = { id: '', event: 'message', data: '' };
  for (const line of part.split('\n')) {
    const place = line.indexOf(':');
    if (place > 0) one[line.slice(0, place)] = line.slice(place + 1).replace(/^ /, '');
  }
  return one;
}
