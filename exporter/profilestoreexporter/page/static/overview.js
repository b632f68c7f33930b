// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// The start of the page: all services by what they cost, and the profile types of one of them. Each row is a link.

import {button, el, refill} from './dom.js';
import {clean, formatChange, formatCount, formatDuration, formatRate, formatShare, formatTime, formatValue} from './format.js';
import {formatState} from './state.js';

const [lineWidth, lineHeight] = [120, 22];

// linePath returns the area below values as the path of an SVG; gaps stay gaps. The largest value reaches the upper edge.
export function linePath(values, width, height) {
  const top = values.reduce((most, value) => Math.max(most, value ?? 0), 0);
  if (!top) return '';
  const at = (n) => Math.round(n * 10) / 10;
  const x = (i) => at(i * width / values.length);
  return values.map((value, i) => {
    if (value === null) return '';
    const begins = i === 0 || values[i - 1] === null;
    const ends = i === values.length - 1 || values[i + 1] === null;
    return `${begins ? `M${x(i)} ${height}` : ''}V${at(height - Math.max(0.5, value / top * height))}H${x(i + 1)}${ends ? `V${height}z` : ''}`;
  }).join('');
}

function timeLine(line, label) {
  if (!line?.values.some((value) => value)) return null;
  const create = (name, attributes) => {
    const element = document.createElementNS('http://www.w3.org/2000/svg', name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    return element;
  };
  const svg = create('svg', {viewBox: `0 0 ${lineWidth} ${lineHeight}`, width: lineWidth, height: lineHeight, preserveAspectRatio: 'none', class: 'sparkline', role: 'img', 'aria-label': label});
  svg.append(create('path', {d: linePath(line.values, lineWidth, lineHeight)}));
  return svg;
}

// change returns what a value was before, as a signed change; a change in the last digit is none.
function change(cost, text) {
  if (!cost || (!cost.before && !cost.now)) return '';
  if (!cost.before) return el('small', {}, 'new');
  const ratio = cost.now / cost.before - 1;
  const kind = Math.abs(ratio) < 0.02 ? '' : ratio > 0 ? 'more' : 'less';
  return el('span', {class: kind, title: `${text(cost.before)} in the same time before`}, Math.abs(ratio) < 0.005 ? '±0 %' : formatChange(cost.now, cost.before));
}

const cores = (value) => formatRate(value * 1e9, 'nanoseconds', true);
const bytes = (value) => formatValue(value, 'bytes');

// The columns that can be sorted, with the words of the API.
const columns = [['name', 'Service', 'name'], ['cpu', 'Processor', 'number'], ['change', 'Change', 'number change'], ['', '', 'line'], ['memory', 'Memory', 'number'], ['', '', 'line']];

export class Overview {
  constructor(app) {
    this.app = app;
    const find = () => app.update({find: this.search.value, most: '30'}, {replace: true});
    this.search = el('input', {type: 'search', id: 'find', placeholder: 'search services', 'aria-label': 'Search services', spellcheck: 'false', autocomplete: 'off', title: 'A part of the name (/)', oninput: find, onsearch: find});
    this.sum = el('output', {class: 'sum'});
    this.head = el('tr');
    this.body = el('tbody');
    this.more = el('p', {class: 'note'});
    this.element = el('section', {class: 'overview', 'aria-label': 'Services', tabindex: -1},
      el('div', {class: 'bar'}, el('h2', {}, 'Services'), this.search, this.sum),
      el('div', {class: 'rows', tabindex: 0, role: 'region', 'aria-label': 'Services by cost'}, el('table', {}, el('thead', {}, this.head), this.body), this.more));
  }

  // show lists an answer of /api/overview; types is that of /api/types for the service that is open, or null.
  show(answer, types) {
    const {state} = this.app;
    if (this.search.value !== state.find) this.search.value = state.find;
    const span = formatDuration(answer.until - answer.from);
    this.sum.textContent = `${formatCount(answer.services, 'service')}${state.find ? ' found' : ''} · ${cores(answer.cpu.now)} in the ${this.app.state.time.seconds ? `last ${span}` : span}`;
    this.renderHead();
    refill(this.body, [answer, types, state.open, state.by, formatState(state)], () => answer.list.flatMap((row) => [
      this.row(row, answer), ...(row.service === state.open && types ? types.types.map((type) => this.typeRow(row, type)) : []),
    ]));
    const hidden = answer.services - answer.list.length;
    refill(this.more, [hidden, answer.services, state.find], () => [
      !answer.services ? `No service has “${clean(state.find, 40)}” in its name.` : '',
      hidden ? button(`show more of ${formatCount(hidden, 'other')}`, () => this.app.update({most: String(Math.min(200, Number(this.app.state.most) + 30))}, {replace: true})) : '',
    ]);
  }

  renderHead() {
    const {state, update} = this.app;
    refill(this.head, state.by, () => columns.map(([by, label, kind]) => el('th', {
      class: kind, scope: 'col', 'aria-sort': by && by === state.by ? (by === 'name' ? 'ascending' : 'descending') : null,
    }, by ? button(`${label}${by === state.by ? (by === 'name' ? ' ↑' : ' ↓') : ''}`, () => update({by}), {title: `Sort by ${label.toLowerCase()}`}) : el('span', {class: 'offscreen'}, 'over time'))));
  }

  row(row, answer) {
    const {state, update} = this.app;
    const isOpen = row.service === state.open;
    const name = clean(row.service, 120) || '(no name)';
    const cell = el('td', {class: 'number share'}, row.cpu ? [el('span', {}, cores(row.cpu.now)), el('small', {}, formatShare(row.cpu.now, answer.cpu.now))] : el('small', {}, row.until < answer.from ? `last ${formatTime(row.until)}` : '–'));
    if (row.cpu && answer.cpu.now) cell.style.setProperty('--share', `${(100 * Math.min(1, row.cpu.now / answer.cpu.now)).toFixed(1)}%`);
    return el('tr', {},
      el('th', {class: 'name', scope: 'row'},
        button(isOpen ? '▾' : '▸', () => update({open: isOpen ? '' : row.service}, {replace: true}), {class: 'quiet', 'aria-expanded': String(isOpen), 'aria-label': `Profiles of ${name}`}),
        el('a', {href: this.link({service: row.service, ...this.timeOf(row, answer)}), title: name}, name)),
      cell, el('td', {class: 'number change'}, change(row.cpu, cores)), el('td', {class: 'line'}, timeLine(row.cpu_line, `Processor of ${name} over time`)),
      el('td', {class: 'number'}, row.memory ? bytes(row.memory.now) : '', ' ', change(row.memory, bytes)), el('td', {class: 'line'}, timeLine(row.memory_line, `Memory of ${name} over time`)));
  }

  typeRow(row, type) {
    const isCPU = type.profile === 'process_cpu';
    const text = (value) => (type.kind === 'gauge' ? formatValue(value, type.unit) : formatRate(value, type.unit, isCPU));
    return el('tr', {class: 'type'},
      el('th', {class: 'name', scope: 'row'}, el('a', {href: this.link({service: row.service, profile: type.profile, type: type.type, isAuto: false})}, clean(`${type.profile} · ${type.type.split('/')[0]}`, 80))),
      el('td', {class: 'number'}, type.cost ? text(type.cost.now) : el('small', {}, '–')), el('td', {class: 'number change'}, change(type.cost, text)),
      el('td', {class: 'line'}, timeLine(type, `${type.profile} over time`)), el('td'), el('td'));
  }

  // timeOf returns the last time with profiles of a service that has none in the time of the list.
  timeOf(row, {from, until}) {
    return row.until > from && row.from < until ? {} : {time: {from: Math.max(row.from, row.until - (until - from)), until: row.until + 1}};
  }

  // link returns the address of a service, in the time of the list.
  link(patch) {
    return `#${formatState({...this.app.state, find: '', by: 'cpu', open: '', most: '30', ...patch})}`;
  }
}
