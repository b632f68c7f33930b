// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Numbers, times and names as text. Pure functions.

const steps = {
  nanoseconds: [['ns', 1], ['µs', 1e3], ['ms', 1e6], ['s', 1e9], ['min', 60e9], ['h', 3600e9]],
  bytes: [['B', 1], ['KiB', 1024], ['MiB', 1024 ** 2], ['GiB', 1024 ** 3], ['TiB', 1024 ** 4]],
  count: [['', 1], ['k', 1e3], ['M', 1e6], ['G', 1e9], ['T', 1e12]],
};

// scales maps the units that producers write to one of the step lists and to its base unit. Like every table that is looked up by
// a producer's word, it has no prototype: a unit can be named `constructor`.
const scales = {__proto__: null};
for (const [kind, factor, ...words] of [
  ['nanoseconds', 1, 'nanoseconds', 'nanosecond', 'ns'], ['nanoseconds', 1e3, 'microseconds', 'microsecond', 'us', '\u00b5s', '\u03bcs'],
  ['nanoseconds', 1e6, 'milliseconds', 'millisecond', 'ms'], ['nanoseconds', 1e9, 'seconds', 'second', 's'],
  ['nanoseconds', 60e9, 'minutes', 'minute', 'min'], ['nanoseconds', 3600e9, 'hours', 'hour', 'h'],
  ['bytes', 1, 'bytes', 'byte', 'b', 'by'], ['bytes', 1024, 'kilobytes', 'kilobyte', 'kb', 'kib'],
  ['bytes', 1024 ** 2, 'megabytes', 'megabyte', 'mb', 'mib'], ['bytes', 1024 ** 3, 'gigabytes', 'gigabyte', 'gb', 'gib'],
  ['count', 1, 'count', ''],
]) for (const word of words) scales[word] = [kind, factor];

// digits returns a number with three significant digits, without an exponent.
function digits(value) {
  const size = Math.abs(value);
  if (size >= 99.95 || Number.isInteger(value)) return String(Math.round(value));
  return value.toFixed(size >= 9.995 ? 1 : 2);
}

// formatValue returns a value of a unit in the largest step that keeps it at 1 or more: 3.10 s, 42.1 MiB, 12.3 k.
// An unknown unit is written after the number. Values that are compared have the step of the largest of them, which is `like`.
export function formatValue(value, unit = '', like = value) {
  if (value === null || value === undefined || !Number.isFinite(value)) return '–';
  const [kind, factor] = scales[unit.toLowerCase()] ?? ['count', 1];
  let [name, size] = steps[kind][0];
  for (const [nextName, nextSize] of steps[kind]) {
    // Otherwise 999.6 ms would be rounded to 1000 ms.
    if (Math.abs(like * factor) >= nextSize * 0.9995) [name, size] = [nextName, nextSize];
  }
  const known = unit.toLowerCase() in scales;
  return [minus(digits(value * factor / size)), name, known ? '' : clean(unit, 30)].filter(Boolean).join(' ');
}

// formatRate returns how much was added in a second: processor time as cores, other time as seconds in a second.
export function formatRate(perSecond, unit, isCPU, like = perSecond) {
  if (!Number.isFinite(perSecond ?? NaN)) return '–';
  if (!isTime(unit)) return `${formatValue(perSecond, unit, like)}/s`;
  const ratio = perSecond * scales[unit.toLowerCase()][1] / 1e9;
  const size = Math.abs(ratio);
  const isSmall = Math.abs(like / (perSecond || 1) * ratio) < 0.1;
  const text = size === 0 || !isSmall ? digits(ratio) : size < 1e-4 ? '<0.0001' : String(Number(ratio.toPrecision(2)));
  return `${minus(text)} ${isCPU ? (text === '1' ? 'core' : 'cores') : 's/s'}`;
}

// isTime reports whether a unit is one of time.
export function isTime(unit) {
  return scales[unit.toLowerCase()]?.[0] === 'nanoseconds';
}

// formatExact returns a value with all its digits, with separators of thousands.
export function formatExact(value) {
  return minus(Math.round(value).toLocaleString('en-US'));
}

function minus(text) {
  return text.replace('-', '−');
}

// formatShare returns part of whole in percent.
export function formatShare(part, whole) {
  return whole ? formatPercent(100 * part / whole) : '–';
}

export function formatPercent(percent, sign = '') {
  if (!Number.isFinite(percent)) return '–';
  const size = Math.abs(percent);
  const nothing = size === 0 || (sign && size < 0.005);
  const text = nothing ? '0' : size >= 99.95 ? percent.toFixed(0) : size < 0.01 ? (sign ? percent.toFixed(2) : '<0.01') : percent.toFixed(size < 1 ? 2 : 1);
  return `${percent > 0 && !nothing ? sign : ''}${minus(text)} %`;
}

// formatChange returns how much a value changed relative to its base: +12.3 %, new, gone.
export function formatChange(value, base) {
  if (base === value) return '±0 %';
  if (base === 0) return 'new';
  if (value === 0) return 'gone';
  return formatPercent(100 * (value - base) / Math.abs(base), '+');
}

const pad = (n) => String(n).padStart(2, '0');

const formatDate = (date) => `${date.getFullYear()}-${pad(date.getMonth() + 1)}-${pad(date.getDate())}`;

// formatTime returns the user's local time, with the date if that is not today.
export function formatTime(ms, now = Date.now()) {
  const date = new Date(ms);
  const clock = `${pad(date.getHours())}:${pad(date.getMinutes())}:${pad(date.getSeconds())}`;
  return date.toDateString() === new Date(now).toDateString() ? clock : `${formatDate(date)} ${clock}`;
}

// tickLabels returns a function that labels the ticks of an axis from left to right: the time of day without seconds that are 0, or with
// milliseconds or microseconds if the step needs them, and the date only where it changes, or where the first tick is not today's.
export function tickLabels(now = Date.now(), step = 1000) {
  let before = new Date(now).toDateString();
  const digits = step < 1 ? 3 : 0; // of a millisecond
  return (time) => {
    const ms = Number(time.toFixed(digits));
    const date = new Date(ms);
    const fraction = step < 1000 ? `.${(ms % 1000).toFixed(digits).padStart(digits ? 7 : 3, '0').replace('.', '')}` : '';
    const clock = `${pad(date.getHours())}:${pad(date.getMinutes())}${fraction || date.getSeconds() ? `:${pad(date.getSeconds())}${fraction}` : ''}`;
    const isNewDay = date.toDateString() !== before;
    before = date.toDateString();
    if (!isNewDay) return clock;
    const day = `${date.toLocaleString('en-US', {month: 'short'})} ${date.getDate()}`;
    return fraction || date.getHours() || date.getMinutes() || date.getSeconds() ? `${day}, ${clock}` : day;
  };
}

// formatRange returns two local times: with one date if it is the same and not today, with both if they differ.
export function formatRange(from, until, now = Date.now()) {
  const isOneDay = new Date(from).toDateString() === new Date(until).toDateString();
  return isOneDay ? `${formatTime(from, now)} – ${formatTime(until, until)}` : `${formatTime(from, NaN)} – ${formatTime(until, NaN)}`;
}

// formatCount returns a number of things: 1 profile, 2 profiles.
export function formatCount(n, noun) {
  return `${n.toLocaleString('en-US')} ${noun}${n === 1 ? '' : 's'}`;
}

// formatZone returns how far the user's local time is ahead of UTC at a moment: UTC+02:00, or UTC.
export function formatZone(ms) {
  const minutes = -new Date(ms).getTimezoneOffset();
  const size = Math.abs(minutes);
  return size ? `UTC${minutes > 0 ? '+' : '−'}${pad(Math.floor(size / 60))}:${pad(size % 60)}` : 'UTC';
}

// formatUTC returns a time in UTC: 2026-01-31 12:00:00 UTC.
export function formatUTC(ms) {
  const text = new Date(ms).toJSON(); // null for a time that is too far away
  return text ? `${text.slice(0, -5).replace('T', ' ')} UTC` : '–';
}

// formatDuration returns milliseconds as 250 ms, 90 s, 15 min, 2 h or 7 days.
export function formatDuration(ms) {
  if (ms < 1000) return formatValue(ms * 1e6, 'nanoseconds');
  const seconds = Math.round(ms / 1000);
  if (seconds < 120) return `${seconds} s`;
  if (seconds < 7200) return `${digits(Math.round(seconds / 6) / 10)} min`;
  if (seconds < 2 * 86400) return `${digits(Math.round(seconds / 360) / 10)} h`;
  return `${digits(Math.round(seconds / 8640) / 10)} days`;
}

// Control characters, and those that change the direction of text or have no width.
const unprintable = /[\u0000-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]/g;
const escapes = {'\n': '\\n', '\r': '\\r', '\t': '\\t'};

// clean returns a producer's text in a form that is safe to show: with control characters as in source code (\n, \x1b,
// \u202e), and cut at max characters.
export function clean(text, max = 400) {
  let short = String(text ?? '');
  if (short.length > max) short = `${short.slice(0, max - 1)}…`;
  return short.replace(unprintable, (c) => {
    const code = c.charCodeAt(0);
    return escapes[c] ?? (code < 0x100 ? `\\x${code.toString(16).padStart(2, '0')}` : `\\u${code.toString(16).padStart(4, '0')}`);
  });
}

// hash32 returns an FNV-1a hash of at most the first 4096 characters and the length.
export function hash32(text, seed = 0x811c9dc5) {
  let hash = seed ^ text.length;
  for (let i = 0, n = Math.min(text.length, 4096); i < n; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
  return hash >>> 0;
}

// hueOf returns the hue of a group. Names that differ by a number at their end, such as ranks and pods, are far apart: the hash of
// one digit more is half a turn away.
export function hueOf(name) {
  const [, head, number] = /^(.*?)(\d{0,6})$/s.exec(name.slice(-256));
  return (hash32(head) + Number(number) * 137.508) % 360;
}

// shortKey returns a text that identifies a name in a URL: the name, or the start and a hash of one that is too long.
export function shortKey(name) {
  return name.length <= 200 ? name : `${name.slice(0, 180)}…${hash32(name).toString(16)}`;
}
