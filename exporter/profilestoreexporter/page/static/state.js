// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// The state of the page, which is kept in the fragment of the URL (after #). Browsers never send it to a server.

// defaults has the default of every key whose value is text. Keys with their default are omitted from the URL.
const defaults = {
  service: '', profile: '', type: '', group_by: '', view: 'flame', direction: 'icicle', color: 'package',
  q: '', fn: '', node: '', zoom: '', focus: '', sort: 'self', norm: '', palette: 'red-green', theme: '', fold: '', find: '', by: 'cpu', open: '', most: '30',
};

export const colors = ['package', 'module', 'kind'];

// words are the values that a key can have, its default first, where others would mean nothing.
const words = {view: ['flame', 'table', 'both', 'sandwich', 'diff', 'heat', 'threads'], color: colors, palette: ['red-green', 'orange-blue']};

export const defaultSeconds = 900;

// A time is {seconds} up to now, {from, until} in milliseconds, or {} for the whole window. A part is the range that is selected in
// the heat map or zoomed to in the threads: {from, until} with fractions of milliseconds, or null. isAuto reports that the page chooses the
// profile and its type: then the URL does not have them, so that it shows the processor time as soon as there is some.
export function emptyState() {
  return {...defaults, isAuto: true, time: {seconds: defaultSeconds}, part: null, attrs: [], hide: [], base: {service: '', time: null, attrs: []}};
}

export function parseState(hash) {
  const state = emptyState();
  const parameters = new URLSearchParams(hash.replace(/^#/, ''));
  for (const name of Object.keys(defaults)) if (parameters.has(name)) state[name] = parameters.get(name);
  for (const [name, known] of Object.entries(words)) if (!known.includes(state[name])) state[name] = known[0];
  state.isAuto = !state.profile;
  if (parameters.get('seconds') === 'all') state.time = {};
  else state.time = readTime(parameters, '') ?? {seconds: positive(parameters.get('seconds')) || defaultSeconds};
  state.part = readTime(parameters, 'part.');
  state.attrs = readAttributes(parameters, 'attr.');
  state.hide = parameters.getAll('hide');
  state.base = {
    service: parameters.get('base.service') ?? '',
    time: readTime(parameters, 'base.'),
    attrs: readAttributes(parameters, 'base.attr.'),
  };
  return state;
}

export function formatState(state) {
  const parameters = new URLSearchParams();
  const set = (name, value) => parameters.append(name, value);
  for (const [name, value] of Object.entries(defaults)) {
    if (state[name] !== value && !(state.isAuto && (name === 'profile' || name === 'type'))) set(name, state[name]);
  }
  if (state.time.from) {
    set('from', state.time.from);
    set('until', state.time.until);
  } else if (state.time.seconds !== defaultSeconds) {
    set('seconds', state.time.seconds ?? 'all');
  }
  if (state.part) {
    set('part.from', micros(state.part.from));
    set('part.until', micros(state.part.until));
  }
  for (const [key, value] of state.attrs) set(`attr.${key}`, value);
  for (const name of state.hide) set('hide', name);
  if (state.base.service) set('base.service', state.base.service);
  if (state.base.time) {
    set('base.from', state.base.time.from);
    set('base.until', state.base.time.until);
  }
  for (const [key, value] of state.base.attrs) set(`base.attr.${key}`, value);
  // Characters that a URL may contain unescaped stay readable.
  return parameters.toString().replace(/%2F/g, '/').replace(/%3A/g, ':').replace(/%28/g, '(').replace(/%29/g, ')');
}

// hasPart reports whether a view shows a part of the state's time.
export function hasPart(state) {
  return Boolean(state.part) && isByTime(state);
}

// isByTime reports whether a view shows when things happened within seconds.
export function isByTime({view}) {
  return view === 'heat' || view === 'threads';
}

// micros returns milliseconds without the digits below a microsecond.
function micros(ms) {
  return String(Math.round(ms * 1000) / 1000);
}

// positive returns a number up to the last millisecond that a Date can have, 0 for anything else.
function positive(text) {
  const number = Number(text);
  return number > 0 && number <= 8.64e15 ? number : 0;
}

function readTime(parameters, prefix) {
  const [from, until] = [positive(parameters.get(`${prefix}from`)), positive(parameters.get(`${prefix}until`))];
  return from && until > from ? {from, until} : null;
}

function readAttributes(parameters, prefix) {
  return [...parameters].filter(([name]) => name.startsWith(prefix) && name.length > prefix.length)
    .map(([name, value]) => [name.slice(prefix.length), value]);
}

// isCompared reports whether a state names something to compare with.
export function isCompared(state) {
  return Boolean(state.base.service || state.base.time || state.base.attrs.length);
}

// withAttribute returns attributes with a key set to a value, or without it for null.
export function withAttribute(attributes, key, value) {
  const others = attributes.filter(([name]) => name !== key);
  return value === null ? others : [...others, [key, value]];
}

// queryOf returns the parameters by which the API selects what a state shows. An attribute can have an empty value.
export function queryOf(state) {
  const time = hasPart(state) ? [['from', micros(state.part.from)], ['until', micros(state.part.until)]] : timeQuery(state.time);
  const names = [['service', state.service], ['profile', state.profile], ['type', state.type]].filter(([, value]) => value !== '');
  return [...names, ...time, ...state.attrs.map(([key, value]) => [`attr.${key}`, value])];
}

export function timeQuery(time) {
  if (time.from) return [['from', Math.round(time.from)], ['until', Math.round(time.until)]];
  return time.seconds ? [['seconds', time.seconds]] : [];
}

// baseQueryOf returns the parameters of the base of a comparison. It inherits those that it does not set.
export function baseQueryOf({base}) {
  const query = base.attrs.map(([key, value]) => [`base.attr.${key}`, value]);
  if (base.service) query.push(['base.service', base.service]);
  if (base.time) query.push(['base.from', Math.round(base.time.from)], ['base.until', Math.round(base.time.until)]);
  return query;
}

// profilePath returns the path of a file of what a state shows, for a browser or `go tool pprof`. A pprof has all sample types; other
// files have one.
export function profilePath(state, suffix = '') {
  const inPath = suffix ? ['service', 'profile'] : ['service', 'profile', 'type'];
  const parameters = queryOf(state).filter(([name]) => !inPath.includes(name));
  const names = [state.service, state.profile + suffix];
  // In a path, such a name means another folder, also if it is escaped: . and .. to a browser, a slash to many reverse proxies.
  if (names.some((name) => /^\.{1,2}$|[/\\%]/.test(name))) {
    return `profiles?${new URLSearchParams([['service', names[0]], ['profile', names[1]], ...parameters])}`;
  }
  const query = new URLSearchParams(parameters).toString();
  return `profiles/${encodeURIComponent(state.service)}/${encodeURIComponent(state.profile)}${suffix}${query ? `?${query}` : ''}`;
}
