// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// The first line of the page: service, profile type, attributes, grouping, time; and the line with the base of a comparison.

import {ask} from './api.js';
import {byValues, sides, withSide} from './compare.js';
import {button, el, refill} from './dom.js';
import {clean, formatCount, formatRange, formatDuration, formatUTC, formatZone} from './format.js';
import {pick, Picker} from './picker.js';
import {defaultSeconds, isCompared, withAttribute} from './state.js';

const day = 24 * 3600;
const ranges = [60, 300, 900, 1800, 3600, 6 * 3600, day, 2 * day, 7 * day, 14 * day, 30 * day, 90 * day];

export const typeKey = ({profile, type}) => `${profile} ${type}`;

// defaultsFor returns the service, profile and type to show, of the profiles of one service: what the state names, otherwise what a user
// most likely wants.
export function defaultsFor(state, profiles) {
  const {service} = state;
  if (state.profile && state.type) return {service, profile: state.profile, type: state.type};
  const named = state.profile ? profiles.filter((row) => row.profile === state.profile) : profiles;
  // An idle process has a CPU profile without samples.
  const filled = named.filter((row) => row.samples);
  const cpu = filled.filter((row) => row.profile === 'process_cpu');
  const candidates = [cpu, filled, named].find((rows) => rows.length) ?? [];
  const row = candidates.find((candidate) => candidate.default) ?? candidates[0];
  return {service, profile: row?.profile ?? state.profile, type: row?.type ?? state.type};
}

// typeLabel returns "process_cpu · cpu nanoseconds".
export function typeLabel(row) {
  return `${row.profile} · ${row.type.replace('/', ' ')}`;
}

// scopes are what has an attribute, other than a resource.
const scopes = {sample: ' · of samples', profile: ' · of profiles'};

// attributeOptions returns one option for each value of each attribute.
export function attributeOptions(attributes) {
  return attributes.flatMap(({key, values, scope}) => values.map(({value, samples}) => ({
    value: [key, value], label: `${key} = ${value}`, detail: `${formatCount(samples, 'sample')}${scopes[scope] ?? ''}`,
  })));
}

// typedAttribute returns an option for a typed key=value that is not in the list.
export function typedAttribute(text) {
  const [, key, value] = /^([^=]+?)\s*=\s*(.+)$/.exec(text) ?? [];
  return key ? {value: [key, value], label: `${key} = ${value}`, detail: 'as typed'} : null;
}

// chips returns a chip for each attribute, with a button that removes it.
function chips(attributes, onremove, oncompare) {
  return attributes.map(([key, value]) => el('span', {class: 'chip', title: clean(`${key} = ${value}`)},
    el('small', {}, clean(key, 40)), ` ${clean(value, 40)} `,
    oncompare?.(key, value), button('×', () => onremove(key), {'aria-label': `Remove the filter ${clean(key, 60)} = ${clean(value, 60)}`})));
}

// findServices returns options for the services that have a text in their names, as many as a list shows.
async function findServices(typed) {
  const {services, more} = await ask('services', [['search', typed], ['limit', 200]], undefined, 'services');
  return {more, options: services.map((row) => ({
    value: row.service, label: row.service || '(no name)', detail: `${formatCount(row.profiles, 'profile')} · ${formatCount(row.samples, 'sample')}`,
  }))};
}

export class SelectionBar {
  constructor(host, app) {
    this.app = app;
    const {update} = app;
    this.service = new Picker({label: 'service', none: 'all', empty: 'No service has sent a profile yet.', search: findServices, onpick: (service) => app.pickService(service)});
    this.type = new Picker({label: 'profile', empty: 'This service has no profiles.', onpick: (key) => app.pickType(key)});
    this.chips = el('span', {class: 'chips'});
    this.filter = button('+ filter', () => this.addFilter(), {title: 'Show only samples with an attribute (f)'});
    this.group = new Picker({label: 'group by', onpick: (key) => update({group_by: key}), empty: 'These samples have no attributes.'});
    this.live = button('', () => app.toggleLive(), {class: 'live'});
    this.range = el('select', {'aria-label': 'Time range', onchange: () => {
      const {value} = this.range;
      if (value !== 'custom') update({time: value === 'all' ? {} : {seconds: Number(value)}});
    }});
    this.zone = el('small', {class: 'zone'});
    host.append(this.service.element, this.type.element, this.chips, this.filter, this.group.element, el('span', {class: 'space'}), this.live, this.range, this.zone);
  }

  addFilter() {
    const {app} = this;
    pick(this.filter, {
      label: 'Attribute', options: attributeOptions(app.attributes), custom: typedAttribute, empty: 'These samples have no attributes.',
      onpick: ({value: [key, value]}) => app.update({attrs: withAttribute(app.state.attrs, key, value)}),
    });
  }

  render() {
    const {state, profiles, attributes, update, isStart} = this.app;
    this.service.set([], state.service);
    for (const {element} of [this.type, this.group]) element.hidden = isStart;
    this.filter.hidden = isStart;
    this.type.set(profiles.map((row) => ({value: typeKey(row), label: typeLabel(row), detail: row.kind === 'gauge' ? 'a state: mean over time' : 'summed over time'})),
    state.profile ? typeKey(state) : '');
    const {choices} = this.app;
    refill(this.chips, [state.attrs, choices], () => chips(state.attrs, (key) => update({attrs: withAttribute(this.app.state.attrs, key, null)}), (key, value) => {
      const choice = choices.find((candidate) => candidate.key === key && candidate.values.some((other) => other !== value));
      if (!choice) return null;
      const compare = button('±', () => pick(compare, {
        label: `Compare ${value} with`, options: choice.values.filter((other) => other !== value).map((other) => ({value: other, label: other})),
        onpick: (option) => update(byValues(this.app.state, key, option.value, value)),
      }), {'aria-label': `Compare ${clean(key, 60)} = ${clean(value, 60)} with another value`, title: 'Compare with another value', 'aria-haspopup': 'dialog'});
      return compare;
    }));
    this.group.set([{value: '', label: 'none'}, ...attributes.map(({key, values, more, scope}) => ({
      value: key, label: key, detail: `${formatCount(values.length + (more ?? 0), 'value')}${scopes[scope] ?? ''}`,
    }))], state.group_by);
    this.renderTime();
  }

  renderTime() {
    const {state, shown, status} = this.app;
    const live = !state.time.from;
    this.live.textContent = live ? '● live' : '❚❚ paused';
    this.live.classList.toggle('on', live);
    this.live.setAttribute('aria-pressed', String(live));
    this.live.title = live ? 'Stop here (l)' : 'Follow what comes in (l)';
    const window = status?.window_ms ?? Infinity;
    const options = ranges.filter((s) => s * 1000 < window || s === state.time.seconds || s === defaultSeconds)
      .map((s) => [String(s), `last ${formatDuration(s * 1000)}`]);
    options.push(['all', Number.isFinite(window) ? `all (${formatDuration(window)})` : 'all']);
    const current = state.time.from ? 'custom' : String(state.time.seconds ?? 'all');
    if (current === 'custom') options.push(['custom', formatRange(state.time.from, state.time.until, shown.now)]);
    else if (!options.some(([value]) => value === current)) options.push([current, `last ${formatDuration(current * 1000)}`]);
    refill(this.range, options, () => options.map(([value, text]) => el('option', {value}, text)));
    this.range.value = current;
    this.zone.textContent = formatZone(shown.until);
    this.zone.title = `Times are local. Shown is ${formatUTC(shown.from)} to ${formatUTC(shown.until)}.`;
  }
}

// BaseBar is the line with the base of a comparison.
// few is how many values have a button each; more are in a list.
const few = 6;

export class BaseBar {
  constructor(host, app) {
    Object.assign(this, {host, app});
    const set = (patch) => app.update({base: {...app.state.base, ...patch}});
    this.service = new Picker({label: 'service', none: 'same', search: async (typed) => {
      const found = await findServices(typed);
      return {...found, options: [{value: '', label: 'same'}, ...found.options.filter(({value}) => value !== app.state.service)]};
    }, onpick: (service) => set({service})});
    this.time = new Picker({label: 'time', none: 'same time', onpick: (time) => set({time})});
    this.chips = el('span', {class: 'chips'});
    this.filter = button('+ attribute', () => pick(this.filter, {
      label: 'Attribute of the base', options: attributeOptions(app.attributes), custom: typedAttribute,
      onpick: ({value: [key, value]}) => set({attrs: withAttribute(app.state.base.attrs, key, value)}),
    }));
    this.swap = button('⇄ swap', () => app.swapSides(), {title: 'Show the base, and compare it with what is shown now'});
    this.norm = el('select', {'aria-label': 'How to compare', onchange: () => app.update({norm: this.norm.value})},
      el('option', {value: 'share'}, 'by share of total'), el('option', {value: 'rate'}, 'by rate'));
    this.values = el('span', {class: 'values'});
    this.palette = el('select', {'aria-label': 'Colours', onchange: () => app.update({palette: this.palette.value})},
      el('option', {value: 'red-green'}, 'red + / green −'), el('option', {value: 'orange-blue'}, 'orange + / blue −'));
    this.sum = el('span', {class: 'sum'});
    host.append(this.values, el('strong', {}, 'compared with'), this.service.element, this.time.element, this.chips, this.filter, this.swap,
      el('span', {class: 'space'}), this.sum, this.norm, this.palette);
    this.set = set;
  }

  render(sum) {
    const {state, shown, status} = this.app;
    this.host.hidden = state.view !== 'diff';
    if (this.host.hidden) return;
    const {base} = state;
    this.service.set([], base.service);
    const span = shown.until - shown.from;
    const earlier = (ms, label) => ({value: {from: shown.from - ms, until: shown.until - ms}, label});
    const options = [{value: null, label: 'same time'}, earlier(span, `the ${formatDuration(span)} before`), earlier(3600e3, 'an hour earlier')];
    // What the store does not reach is not offered.
    if (status?.window_ms > day * 1e3) options.push(earlier(day * 1e3, 'a day earlier'));
    if (status?.window_ms > 7 * day * 1e3) options.push(earlier(7 * day * 1e3, 'a week earlier'));
    if (base.time) options.push({value: base.time, label: formatRange(base.time.from, base.time.until, shown.now), detail: 'Shift and drag in the time line chooses another'});
    this.time.set(options, base.time);
    refill(this.chips, base.attrs, () => chips(base.attrs, (key) => this.set({attrs: withAttribute(this.app.state.base.attrs, key, null)})));
    this.norm.options[1].text = this.app.model?.answer.kind === 'gauge' ? 'by value' : 'by rate';
    this.norm.value = this.app.model?.scale?.byShare ?? !base.time ? 'share' : 'rate';
    this.renderValues();
    this.palette.value = state.palette;
    this.sum.textContent = isCompared(state) ? sum : '';
  }
  // renderValues offers both sides the values of the attributes that have several: one click each.
  renderValues() {
    const {app} = this;
    const {state} = app;
    const shown = app.choices.slice(0, 3);
    refill(this.values, [shown, state.attrs, state.base.attrs], () => shown.map((choice) => {
      const {key, values} = choice;
      const now = sides(state, key);
      const one = (side, word) => {
        const pickOne = (value) => app.update(withSide(app.state, choice, side, value));
        const isSet = (value) => now.value !== undefined && now[side] === value && now.base !== now.value;
        if (values.length <= few) {
          return el('span', {class: 'segments', role: 'group', 'aria-label': `${word}: ${clean(key, 60)}`}, el('small', {}, word),
            values.map((value) => button(clean(value, 30) || '(empty)', () => pickOne(value), {'aria-pressed': String(isSet(value))})));
        }
        const picker = new Picker({label: word, none: 'choose', onpick: pickOne});
        picker.set(values.map((value) => ({value, label: value})), now.base === now.value ? undefined : now[side]);
        return picker.element;
      };
      return el('span', {class: 'choice'}, el('b', {}, clean(key, 60)), one('base', 'base'), '→', one('value', 'shown'));
    }));
  }
}
