// Times of a stream: integers, or dateTimes of which a number of microseconds since 1970 is made.
// Everything is shown in UTC, as the data and the command line have it.

const MICRO = 1e6;

/** A time of the data (an integer, or an ISO text) as a number: that integer, or microseconds. */
export function asNumber(time) {
  if (time === null || time === undefined || time === '') return null;
  if (typeof time === 'number') return time;
  if (/^-?\d+$/.test(time)) return Number(time);
  const found = /^(.*?)(?:\.(\d+))?(Z|[+-]\d\d:\d\d)?$/.exec(time);
  const whole = Date.parse(found[1] + (found[3] ?? 'Z'));
  if (Number.isNaN(whole)) return null;
  return whole * 1000 + Number((found[2] ?? '').padEnd(6, '0').slice(0, 6));
}

/** Whether times of this kind are integers. */
export const isInteger = (time) => typeof time === 'number' || /^-?\d+$/.test(time ?? '');

/** A number of `asNumber` in the form of the data. */
export function asText(number, integer) {
  if (integer) return String(Math.round(number));
  const micros = Math.round(number);
  const whole = new Date(Math.floor(micros / MICRO) * 1000).toISOString().slice(0, 19);
  const rest = ((micros % MICRO) + MICRO) % MICRO;
  return whole + (rest ? `.${String(rest).padStart(6, '0').replace(/0+$/, '')}` : '') + 'Z';
}

/** A time for readers: {date, clock}; an integer has no date. */
export function shown(time) {
  if (time === null || time === undefined) return { date: '', clock: '–' };
  if (isInteger(time)) return { date: '', clock: String(time) };
  const found = /^(\d+-\d\d-\d\d)T(\d\d:\d\d:\d\d)(?:\.(\d+))?(Z|[+-]\d\d:\d\d)?$/.exec(time);
  if (!found) return { date: '', clock: String(time) };
  const rest = found[3] ? `.${found[3].replace(/0+$/, '')}` : '';
  return { date: found[1], clock: found[2] + rest + (found[4] && found[4] !== 'Z' ? found[4] : '') };
}

/** One line of `shown`. */
export function line(time) {
  const { date, clock } = shown(time);
  return date ? `${date} ${clock}` : clock;
}

/** How long microseconds, or units of integer time, are, for readers. */
export function length(number, integer) {
  if (integer) return count(number);
  const seconds = number / MICRO;
  if (seconds < 0.001) return `${Math.round(number)} µs`;
  if (seconds < 1) return `${Math.round(seconds * 1000)} ms`;
  if (seconds < 90) return `${round(seconds)} s`;
  if (seconds < 5400) return `${round(seconds / 60)} min`;
  if (seconds < 172800) return `${round(seconds / 3600)} h`;
  return `${round(seconds / 86400)} d`;
}

const round = (value) => (value < 10 ? Math.round(value * 10) / 10 : Math.round(value));

/** `1 event`, `2 events`. */
export const counted = (value, word) => `${count(value)} ${word}${value === 1 ? '' : 's'}`;

/** A number with thin spaces between thousands. */
export const count = (value) => String(Math.round(value)).replace(/\B(?=(\d{3})+$)/g, '\u202f');

const STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400,
  172800, 604800, 1209600, 2592000, 7776000, 31536000];

/** About so many round times between two numbers: [{at, text}]. */
export function ticks(begin, end, wanted, integer) {
  const span = Math.max(end - begin, integer ? 1 : 1);
  let step;
  if (integer || span < wanted * MICRO) {
    const least = span / wanted;
    const power = 10 ** Math.floor(Math.log10(least));
    step = [1, 2, 5, 10].map((one) => one * power).find((one) => one >= least);
    if (integer) step = Math.max(1, Math.round(step));
  } else {
    const seconds = span / MICRO / wanted;
    step = (STEPS.find((one) => one >= seconds) ?? Math.ceil(seconds / 31536000) * 31536000) * MICRO;
  }
  const found = [];
  for (let at = Math.ceil(begin / step) * step; at <= end && found.length < 50; at += step) {
    found.push({ at, text: integer ? count(at) : tickText(at, step) });
  }
  return found;
}

function tickText(at, step) {
  const text = asText(at, false);
  const [date, clock] = text.slice(0, -1).split('T');
  if (step >= 86400 * MICRO) return date;
  if (clock.startsWith('00:00:00') && step >= 60 * MICRO) return date.slice(5);
  if (step >= 60 * MICRO) return clock.slice(0, 5);
  return step >= MICRO ? clock.slice(0, 8) : clock.slice(3, 12);
}
