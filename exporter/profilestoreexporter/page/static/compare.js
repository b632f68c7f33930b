// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// What to compare with what: the values of an attribute, versions before all, or two times. Pure functions; each returns a change of a state.

import {formatRate, formatValue, isTime} from './format.js';
import {withAttribute} from './state.js';

export const versionKey = 'service.version';

// choices returns the attributes of which a selection has several values, versions first: [{key, values}]. Versions are in the order in
// which they appeared, other values in that of their samples. Numbers of samples, such as the sizes of Go's allocations, are no alternatives.
export function choices(attributes, versions) {
  const order = new Map(versions.map(({value}, i) => [value, i]));
  const found = attributes.filter(({scope, values}) => values.length > 1 && !(scope === 'sample' && values.every(({value}) => /^-?[\d.]+$/.test(value)))).map(({key, values}) => {
    const names = values.map(({value}) => value);
    return {key, values: key === versionKey ? names.sort((a, b) => (order.get(a) ?? -1) - (order.get(b) ?? -1)) : names};
  });
  return found.sort((a, b) => (b.key === versionKey) - (a.key === versionKey));
}

// byValues returns the change of a state that compares two values of an attribute within one time, the whole of what two times had.
export function byValues(state, key, base, value) {
  const {time, base: {time: earlier}} = state;
  const whole = earlier && time.from ? {from: Math.min(time.from, earlier.from), until: Math.max(time.until, earlier.until)} : time;
  return {
    view: 'diff', group_by: '', time: whole, attrs: withAttribute(state.attrs, key, value),
    base: {service: '', time: null, attrs: withAttribute(state.base.attrs, key, base)},
  };
}

// sides returns the values of an attribute on both sides of a comparison; the base inherits what it does not set.
export function sides(state, key) {
  const of = (attributes) => attributes.find(([name]) => name === key)?.[1];
  const value = of(state.attrs);
  return {base: of(state.base.attrs) ?? value, value};
}

// withSide returns the change of a state in which one side has another value. If both would be the same, the other side gets the value that
// this one had, or any other: a comparison with itself shows nothing.
export function withSide(state, {key, values}, side, chosen) {
  const now = sides(state, key);
  const other = side === 'base' ? 'value' : 'base';
  const left = now[other] !== undefined && now[other] !== chosen ? now[other]
    : now[side] !== undefined && now[side] !== chosen ? now[side] : otherThan(values, chosen);
  return side === 'base' ? byValues(state, key, chosen, left) : byValues(state, key, left, chosen);
}

// otherThan returns the value before another one, or the one after it if it is the first.
function otherThan(values, value) {
  const at = values.indexOf(value);
  return values[at > 0 ? at - 1 : at + 1];
}

// firstComparison returns the values with which a comparison starts: those by which the state is grouped, the one that it is filtered by
// and another, or the last two versions. null if there are none.
export function firstComparison(state, {attributes, versions, groups}) {
  const offered = choices(attributes, versions);
  const largest = state.group_by ? largestGroups(groups) : [];
  if (largest.length === 2) return byValues(state, state.group_by, ...largest);
  for (const {key, values} of offered) {
    const {value} = sides(state, key);
    if (value !== undefined && otherThan(values, value) !== undefined) return byValues(state, key, otherThan(values, value), value);
  }
  const version = offered.find(({key}) => key === versionKey);
  return version ? byValues(state, versionKey, version.values.at(-2), version.values.at(-1)) : null;
}

// largestGroups returns the names of the two largest groups of a time line, the one that began first before the other.
function largestGroups(groups) {
  const named = groups.filter(({name}) => name !== '(none)' && name !== '(other)').map(({name, values}) => ({
    name, sum: values.reduce((a, b) => a + (b ?? 0), 0), first: values.findIndex((value) => value !== null),
  }));
  const two = named.sort((a, b) => b.sum - a.sum).slice(0, 2);
  return two.length < 2 ? [] : two.sort((a, b) => a.first - b.first || b.sum - a.sum).map(({name}) => name);
}

// sinceVersion returns the change of a state that compares the time since a version appeared with one of the same length before.
export function sinceVersion(state, {from}, {from: first, until: last}) {
  const length = Math.round(Math.min(from - first, last - from));
  return {
    view: 'diff', group_by: '', attrs: state.attrs.filter(([key]) => key !== versionKey),
    time: {from, until: from + length}, base: {service: '', time: {from: from - length, until: from}, attrs: []},
  };
}

// marks returns the versions that appeared within a time, other than the first one: each has a time before it.
export function marks(versions, {from, until}) {
  return versions.filter((version, i) => i > 0 && version.from > from && version.from < until && version.from > versions[0].from);
}

// Scale is how two sides are compared: each as a share of its total, or by time, where the base counts as if it were as long as what is
// shown. A state is a mean, whatever the time.
export class Scale {
  constructor({norm, kind, unit, isCPU, shown, base}) {
    const [ms, baseMs] = [shown.until - shown.from, base ? base.until - base.from : shown.until - shown.from];
    this.byShare = norm ? norm === 'share' : !base;
    this.factor = this.byShare || kind === 'gauge' ? 1 : ms / baseMs; // of the base
    this.perSecond = this.byShare || kind === 'gauge' ? 0 : 1000 / ms;
    Object.assign(this, {unit, isCPU});
  }

  // text returns a value; all values of a row have the unit of the largest, which is `like`.
  text(value, like = value) {
    const {perSecond, unit, isCPU} = this;
    return perSecond ? formatRate(value * perSecond, unit, isCPU, like * perSecond) : formatValue(value, unit, like);
  }

  // unitOfTable is the unit that all values of a table have; it stands in the head and not in each cell.
  get unitOfTable() {
    return this.perSecond && isTime(this.unit) ? (this.isCPU ? ' cores' : ' s/s') : '';
  }

  cell(text, inTable) {
    return inTable && this.unitOfTable ? text.slice(0, text.lastIndexOf(' ')) : text;
  }

  // pair returns the value of the base and the shown one.
  pair(base, value, inTable) {
    const like = Math.max(Math.abs(base * this.factor), Math.abs(value));
    return [base * this.factor, value].map((side) => this.cell(this.text(side, like), inTable));
  }

  // change returns how much more the shown value is, with its sign.
  change(base, value, inTable) {
    const change = value - base * this.factor;
    const like = Math.max(Math.abs(base * this.factor), Math.abs(value));
    return (change > 0 ? '+' : '') + this.cell(this.text(change, like), inTable);
  }

  get key() {
    return [this.byShare, this.factor, this.perSecond];
  }
}

// halves returns an initial comparison: the later half of the samples' time with the earlier one. They meet between two steps of
// the time line, unless these are too coarse for the shown time.
export function halves({times, shown, state}) {
  if (!times) return {};
  const {answer} = times;
  const step = answer.step_ms;
  let [first, last] = [Infinity, 0];
  for (const {values} of answer.groups) {
    values.forEach((value, i) => {
      const start = answer.from + i * step;
      if (value === null || start + step <= shown.from || start >= shown.until) return;
      [first, last] = [Math.min(first, start), Math.max(last, start + step)];
    });
  }
  if (last - first > step) [first, last] = [Math.max(first, shown.from), Math.min(last, shown.until)];
  else [first, last] = [shown.from, shown.until];
  let middle = (first + last) / 2;
  if (last - first >= 8 * step) middle = answer.from + Math.round((middle - answer.from) / step) * step;
  middle = Math.round(middle);
  return {time: {from: middle, until: Math.round(last)}, base: {...state.base, time: {from: Math.round(first), until: middle}}};
}

// swapped returns the change of a state that shows the base, and compares it with what is shown now.
export function swapped(state, shown) {
  const {base} = state;
  const keys = new Set(base.attrs.map(([key]) => key));
  return {
    service: base.service || state.service,
    time: base.time ?? state.time,
    attrs: [...state.attrs.filter(([key]) => !keys.has(key)), ...base.attrs],
    base: {
      service: base.service ? state.service : '',
      time: base.time ? {from: Math.round(shown.from), until: Math.round(shown.until)} : null,
      attrs: state.attrs.filter(([key]) => keys.has(key)),
    },
  };
}
