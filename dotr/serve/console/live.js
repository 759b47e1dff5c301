// The events of the server as they come, without a gap: after a lost connection it goes on behind the last one.
import { events } from './api.js';

const WAITS = [300, 600, 1200, 2500, 5000];

/** Owns the connection. `onEvents([{number, rule, line}])`, `onState('live' | 'waiting')`, `onMissed({after, first})`. */
export class Live {
  constructor({ onEvents, onState, onMissed }) {
    Object.assign(this, { onEvents, onState, onMissed });
    this.last = null;
    this.failures = 0;
    this.running = null;
  }

  /** Begin behind the event of a number. */
  start(last) {
    this.stop();
    this.last = last;
    this.running = new AbortController();
    this.run(this.running.signal);
  }

  stop() {
    this.running?.abort();
    this.running = null;
  }

  async run(signal) {
    while (!signal.aborted) {
      try {
        const open = () => { this.failures = 0; this.onState('live'); };
        for await (const found of events('/v1/events', { lastId: this.last, signal, open })) this.take(found);
      } catch (error) {
        if (signal.aborted) return;
        if (error.status === 401 || error.status === 403) { this.onState('refused'); return; }
      }
      if (signal.aborted) return;
      this.onState('waiting');
      await new Promise((done) => { setTimeout(done, WAITS[Math.min(this.failures++, WAITS.length - 1)]); });
    }
  }

  take(found) {
    const rows = [];
    for (const one of found) {
      if (one.event === 'dotr-missed') this.onMissed(JSON.parse(one.data));
      if (!one.id) continue;
      const number = Number(one.id);
      if (this.last !== null && number <= this.last) continue;
      this.last = number;
      rows.push({ number, rule: one.event, line: one.data });
    }
    if (rows.length) this.onEvents(rows);
  }
}
