// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// The messages of the page: what happened, and what to do next.

import {button, copyField, el, refill} from './dom.js';
import {clean, formatCount, formatDuration, formatRange} from './format.js';

export const ui = {
  // noData is shown while the collector has no profiles at all.
  noData: ({window, senders, now}) => message('No profiles yet',
    'The collector is running, and nothing has reached this exporter so far. The page looks again by itself.',
    senderList(senders, now),
    el('p', {}, rich('Push a capture to the `pprof` receiver:')),
    copyField('push', "curl --data-binary @cpu.pb.gz 'http://localhost:4040/v1/pprof?service.name=my-service'"),
    el('p', {}, 'Or let the collector profile itself, or scrape a Go program:'),
    pre('receivers:\n  pprof:\n    self: {collection_interval: 10s}\n    scrape:\n      configs:\n        - job_name: shop\n          static_configs: [{targets: ["localhost:6060"]}]\nservice:\n  pipelines:\n    profiles: {receivers: [pprof], exporters: [profile_store]}'),
    el('p', {class: 'faint'}, rich(`What arrives is kept for ${window ? formatDuration(window) : 'the window'} (\`keep.window\` of the \`profile_store\` exporter, or with a directory \`storage.retention\`).`))),

  // nothingHere is shown if the selection has no samples.
  nothingHere: ({state, from, until, known, actions}) => message('No samples here',
    `${clean(state.service, 80)} has no samples of ${clean(state.profile, 60)}${state.attrs.length ? ' with these attributes' : ''}` +
    `${from ? ` in ${formatRange(from, until)}` : ''}.`,
    known.samples ? el('p', {}, `There are samples in ${formatRange(known.from, known.until)}.`) : null,
    el('p', {class: 'choices'}, actions.map(([label, action]) => button(label, action)))),

  // noTimes is shown if a view by time is chosen for profiles without timestamps.
  noTimes: ({actions}) => message('These profiles have no times of single events',
    'The heat map and the threads need profiles whose samples have timestamps, such as execution traces and recordings.',
    el('p', {class: 'choices'}, actions.map(([label, action]) => button(label, action)))),

  // unknown is shown if the URL names a service or a profile that the store does not have.
  unknown: ({what, name, actions, senders, now}) => message(`${what} “${clean(name, 80)}” is not here`,
    rich('It may not have sent anything within the window, or it was evicted to stay within `keep.max_bytes`, `keep.max_series` or `storage.max_bytes`.'),
    el('p', {class: 'choices'}, actions.map(([label, action]) => button(label, action))),
    senderList(senders, now)),

  // broken is shown if the first request failed.
  broken: (error) => message(clean(error.message, 400), clean(error.hint ?? '', 600),
    copyField('by hand', `curl -i ${new URL('api/status', document.baseURI).href}`),
    error.status !== 0 && error.status !== 421 ? null : el('p', {class: 'faint'}, rich('The address is the key `exporters.profile_store.server.endpoint` (localhost:4042 by default). Behind a proxy, the Host header must be one that the exporter accepts.'))),

  // cancelled is shown if the user ended a query.
  cancelled: ({error, actions}) => message(error.message, error.hint,
    el('p', {class: 'choices'}, actions.map(([label, action]) => button(label, action)))),

  chooseFunction: () => message('Choose a function', 'Click one in the table, or choose “sandwich” at a frame: its callers are shown above it, its callees below.'),
};

// leftOut returns what an answer of /api/events with at most so many events leaves out: the shortest ones, and whole threads.
export function leftOut({start = [], lanes = [], left_out: hidden = 0, lanes_left_out: threads = 0}, maxEvents) {
  const number = (n) => n.toLocaleString('en-US');
  const all = start.length + hidden;
  return [
    all > maxEvents ? `The ${number(maxEvents)} longest of ${number(all)} events are drawn; zoom in to see shorter ones.` : null,
    threads ? `The ${number(lanes.length)} threads with the most time are drawn, ${number(threads)} others are not; a filter shows them.` : null,
  ].filter(Boolean);
}

// senderList says who has sent to the collector in the last ten minutes, and why they were refused.
export function senderList(senders, now) {
  if (!senders.length) return el('p', {}, 'Nobody has sent anything to this collector in the last ten minutes. Programs that are scraped are on the page of the receiver pprof.');
  return el('div', {class: 'senders', role: 'region', tabindex: 0, 'aria-label': 'Senders'}, el('table', {},
    el('caption', {}, 'Who has sent to this collector in the last ten minutes'),
    el('thead', {}, el('tr', {}, ['from', 'to', 'answer', 'requests', 'last'].map((label) => el('th', {scope: 'col'}, label)))),
    el('tbody', {}, senders.map(({address, endpoint, status, count, last, reason}) => el('tr', {class: status >= 400 ? 'refused' : null},
      el('td', {}, clean(address, 60)), el('td', {}, clean(endpoint, 80)), el('td', {}, `${status}${reason ? `: ${clean(reason, 512)}` : ''}`),
      el('td', {class: 'number'}, count.toLocaleString('en-US')), el('td', {class: 'number'}, `${formatDuration(Math.max(0, now - Date.parse(last)))} ago`))))));
}

// renderFindings shows sentences about a service, each with a link to what shows it; the first one also while they are folded.
export function renderFindings(host, findings) {
  host.hidden = !findings.length;
  refill(host, findings, () => [el('details', {},
    el('summary', {}, el('b', {}, formatCount(findings.length, 'finding')), ` ${clean(findings[0]?.text ?? '', 300)}`),
    el('ul', {}, findings.map(({text, advice, link}) => el('li', {}, el('a', {href: `#${link}`}, clean(text, 400)), ` ${clean(advice, 300)}`))))]);
}

// troubleWords are what the store does to profiles, and the key to change.
const troubleWords = {
  __proto__: null,
  'refused.max_series': (n) => `${n} were refused, since there are more series than \`keep.max_series\`: raise it, or set it to 0.`,
  'refused.size': (n) => `${n} were refused, since their message needs more than a quarter of \`keep.max_bytes\`: raise it, or send smaller batches.`,
  'refused.full': (n) => `${n} were refused, since they cannot be written to \`storage.directory\`: is the disk full?`,
  'refused.malformed_samples': (n) => `${n.replace('profile', 'sample')} were dropped, since they cannot be understood: the fault is the sender's.`,
  'refused.out_of_order': (n) => `${n} of totals were dropped, since later ones of the same process had come before.`,
  'evicted.bytes': (n) => `${n} were dropped before their time, to stay within \`keep.max_bytes\` or \`storage.max_bytes\`.`,
  'evicted.max_series': (n) => `${n} were dropped for new series, to stay within \`keep.max_series\`.`,
  'evicted.totals': (n) => `The last totals of ${n.replace('profile', 'series').replace('seriess', 'series')} were forgotten, to stay within \`keep.max_bytes\`.`,
};

// troubleNotices returns a line for each reason for which the store refuses, drops or cannot write profiles now.
export function troubleNotices(troubles, status) {
  const lines = Object.entries(troubles).filter(([name]) => name in troubleWords).map(([name, n]) => troubleWords[name](formatCount(n, 'profile')).replace(/^1 (profile|sample) were/, '1 $1 was'));
  if (status.disk_failing) lines.unshift('Profiles cannot be written to `storage.directory`: look at the disk, its permissions and the log. They stay in memory meanwhile.');
  return lines;
}

// refusedLine returns one line about the requests that were refused lately, '' if none were.
export function refusedLine(senders) {
  const refused = senders.filter(({status}) => status >= 400);
  if (!refused.length) return '';
  const count = refused.reduce((sum, sender) => sum + sender.count, 0);
  const addresses = new Set(refused.map(({address}) => address)).size;
  return `${formatCount(count, 'request')} of ${formatCount(addresses, 'sender')} ${count === 1 ? 'was' : 'were'} refused in the last ten minutes: ${clean(refused[0].reason || `status ${refused[0].status}`, 160)}`;
}

function message(title, text, ...more) {
  return el('div', {class: 'message'}, el('h2', {}, title), el('p', {}, text), ...more);
}

// rich returns a text whose `words` in backquotes are code.
export function rich(text) {
  return text.split('`').map((part, i) => (i % 2 ? el('code', {}, part) : part));
}

function pre(text) {
  return el('pre', {}, text);
}

const keys = [
  ['/', 'search'], ['1 … 7', 'Flame, Table, Both, Sandwich, Diff, Heat map, Threads'], ['s', 'pick a service'], ['p', 'pick a profile type'],
  ['f', 'filter by an attribute'], ['g', 'group by an attribute'], ['l', 'live or paused'], ['[  ]', 'earlier, later'],
  ['i', 'icicle or flame'], ['r', 'collapse recursion'], ['Enter', 'in the search: the next match; with Shift the one before'], ['c', 'next colours'], ['d', 'downloads and commands'], ['u', 'share'], ['t', 'light or dark'],
  ['arrows', 'in the graph: caller, callee, neighbours; in the threads: events'], ['b', 'in the time line: compare with what is chosen'], ['Enter', 'zoom to the selected frame'], ['Backspace', 'zoom out by one frame'],
  ['0', 'zoom out to all'], ['Shift F', 'focus: only samples through the selected function'], ['Shift H', 'hide the selected function'],
  ['Shift S', 'sandwich of the selected function'], ['Ctrl wheel', 'zoom at the pointer'], ['drag', 'move sideways'],
  ['Esc', 'close, clear, zoom out'], ['?', 'this list'],
];

// help returns the overlay of keys.
export function help() {
  const dialog = el('dialog', {class: 'help', 'aria-label': 'Keys', onclose: () => dialog.remove(), onclick: (event) => event.target === dialog && dialog.close()},
    el('h2', {tabindex: -1, autofocus: true}, 'Keys'), // otherwise a small screen would open it at its end, where the button is
    el('dl', {}, keys.map(([key, text]) => [el('dt', {}, key.split(/ (?=[A-Z0-9[\]]|wheel)|  /).map((k) => el('kbd', {}, k))), el('dd', {}, text)])),
    el('p', {class: 'faint'}, 'In the time line: drag chooses what is shown, Shift and drag chooses what to compare it with, a double click shows all. Hatched frames are inlined; kernel, runtime and unknown frames have colours of their own. A search between slashes is a regular expression. All state is in the URL; nothing is stored in the browser.'),
    el('p', {}, button('close', () => dialog.close())));
  document.body.append(dialog);
  dialog.showModal();
}
