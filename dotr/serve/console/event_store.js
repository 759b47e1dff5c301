// The events of a list, newest first: pages of the server behind, and what comes live in front.
import { at, get } from './api.js';
import { asNumber } from './components/times.js';

const PAGE = 500;
const MOST = 200000;

/** What a list shows of an event; who opens it asks for the whole. Where corrections are made: its id, too. */
const row = ({ number, rule, time, bindings, change, id, corrected_at: at }) =>
  (change === undefined ? { number, rule, time, bindings } : { number, rule, time, bindings, change, id, at: at ?? time });

/** Owns the rows: [{number, rule, time, bindings}]. `changed` is called after each change. */
export class EventStore {
  constructor(changed) {
    this.changed = changed;
    this.rows = [];
    this.prepended = 0;
    this.next = null;
    this.busy = false;
    this.problem = null;
    this.loaded = false;
    this.waiting = [];
    this.filter = {};
    this.query = 0;
    this.gone = new Map();
  }

  /** The row that took an event back, if one did: the newest change of that id, where it is later and a −1. */
  takenBack(one) {
    if (one.change !== 1) return null;
    const last = this.gone.get(one.id);
    return last && last.number > one.number ? last : null;
  }

  /** Note what was taken back; `rows` are in any order. The first noted go where they are too many. */
  note(rows) {
    for (const one of rows) {
      if (one.change !== -1) continue;
      const known = this.gone.get(one.id);
      if (!known || known.number < one.number) this.gone.set(one.id, one);
    }
    for (const id of this.gone.keys()) {
      if (this.gone.size <= MOST) break;
      this.gone.delete(id);
    }
  }

  /** Begin again with a filter: {rules, text, since, until}; times in the form of the data. */
  async load(filter) {
    const query = ++this.query;
    Object.assign(this, { filter, loaded: false, waiting: [], busy: true, problem: null });
    this.changed();
    await this.page(query, at('/v1/events', {
      order: 'newest', limit: PAGE, rule: filter.rules, text: filter.text, since: filter.since, until: filter.until,
    }), true);
  }

  /** The next page of older ones. */
  more() {
    if (this.busy || !this.next || this.rows.length >= MOST) return;
    this.busy = true;
    this.page(this.query, this.next, false);
  }

  async page(query, path, first) {
    let page;
    try {
      page = await get(path);
    } catch (error) {
      if (query !== this.query) return;
      Object.assign(this, { busy: false, problem: error.problem ?? { detail: error.message } });
      this.changed();
      return;
    }
    if (query !== this.query) return;
    const rows = page.events.map(row);
    if (first) this.gone.clear();
    this.note(rows);
    this.rows = first ? rows : [...this.rows, ...rows];
    Object.assign(this, { next: page.next, busy: false, loaded: true, problem: null });
    const waiting = this.waiting;
    this.waiting = [];
    if (waiting.length) this.take(waiting);
    // a page may have found nothing among the events that it read
    if (this.next && !rows.length) this.more();
    this.changed();
  }

  /** What came live. */
  take(found) {
    if (!this.loaded) { this.waiting.push(...found); return; }
    const top = this.rows.length ? this.rows[0].number : 0;
    const rows = found.filter((one) => one.number > top && this.wants(one))
      .map((one) => row({ ...JSON.parse(one.line), number: one.number })).filter((one) => this.within(one.time)).reverse();
    if (!rows.length) return;
    this.note(rows);
    this.rows = [...rows, ...this.rows];
    if (this.rows.length > MOST && !this.busy) { // the oldest go, and are asked for again where somebody scrolls to them
      this.rows.length = MOST;
      const { rules, text, since, until } = this.filter;
      this.next = at('/v1/events', { before: this.rows[MOST - 1].number, order: 'newest', limit: PAGE, rule: rules, text, since, until });
    }
    this.prepended += rows.length;
    this.changed();
  }

  wants({ rule, line }) {
    const { rules, text } = this.filter;
    return (!rules?.length || rules.includes(rule)) && (!text || line.toLowerCase().includes(text.toLowerCase()));
  }

  within(time) {
    const { since, until } = this.filter;
    const own = asNumber(time);
    return (!since || own >= asNumber(since)) && (!until || own <= asNumber(until));
  }
}
