// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// What the views show, computed from an answer of the API and the state. Results are cached.

import {changeColor, colorer, kindOf} from './colors.js';
import {formatChange, formatShare, formatValue} from './format.js';
import {columnsFor} from './table.js';
import {Frames, functionTotals, isRecursive, readTree, sandwich, search, transform} from './tree.js';

// Model is what the views show of one answer. query has the parameters that selected it: the state may already select something else.
export class Model {
  constructor(answer, query) {
    Object.assign(this, {answer, query});
    this.unit = answer.unit ?? '';
    this.compared = Boolean(answer.nodes?.base_total);
    this.frames = new Frames(answer.frames ?? {});
    this.results = new Map();
  }

  // once returns the result of a computation, which it repeats only if the key has changed.
  once(name, key, compute) {
    const text = JSON.stringify(key);
    const before = this.results.get(name);
    if (before?.text === text) return before.value;
    const value = compute();
    this.results.set(name, {text, value});
    return value;
  }

  // build computes everything that depends on the state; finder is the Search of it, scale how its sides are compared.
  build(state, finder, scale) {
    const {answer, frames} = this;
    this.scale = scale;
    const weigh = this.weigher();
    const norm = this.compared && scale.key;
    this.whole = this.once('whole', norm, () => readTree(frames, answer.nodes, weigh));
    const shape = [norm, state.focus, state.hide, state.fold];
    this.tree = this.once('tree', shape, () => transform(this.whole, {
      weigh, focus: frames.find(state.focus), hide: new Set(state.hide.flatMap((key) => [...frames.find(key)])), fold: state.fold !== '',
    }));
    this.rows = this.once('rows', shape, () => functionTotals(this.tree));
    finder.find(state.q, frames.name);
    this.found = this.once('found', [shape, finder.version], () => ({...search(this.tree, finder.matches), note: finder.note}));
    this.selected = this.once('selected', state.fn, () => frames.find(state.fn).values().next().value ?? -1);
    this.node = this.once('node', [shape, state.node], () => this.tree.find(state.node));
    this.zoomed = this.once('zoomed', [shape, state.zoom], () => Math.max(0, this.tree.find(state.zoom)));
    this.columns = columnsFor({compared: this.compared, unit: this.unit, total: this.total, baseTotal: this.baseTotal, scale});
  }

  get total() {
    return this.tree.total[0];
  }

  get baseTotal() {
    return this.tree.baseTotal?.[0] ?? 0;
  }

  get isEmpty() {
    return this.whole.count <= 1 && !this.whole.total[0] && !this.whole.baseTotal?.[0];
  }

  // matches returns the nodes of the functions that match a search, the largest first.
  get matches() {
    return this.once('matches', [this.tree.count, this.results.get('found').text], () => {
      const {tree, found: {matched}} = this;
      if (!matched) return [];
      const nodes = [];
      for (let i = 1; i < tree.count; i++) if (matched[tree.function(i)]) nodes.push(i);
      return nodes.sort((a, b) => tree.weight[b] - tree.weight[a] || a - b);
    });
  }

  get depth() {
    return this.once('depth', [this.tree.count], () => this.tree.depth.reduce((deepest, depth) => Math.max(deepest, depth), 0));
  }

  get isRecursive() {
    return this.once('recursive', 0, () => isRecursive(this.whole));
  }

  // isGroup reports whether a function is a value of the attribute that samples are grouped by.
  isGroup(id) {
    return this.frames.isGroup(this.frames.functions[id]);
  }

  // hasSides reports whether a function is selected that has callers and callees.
  get hasSides() {
    return this.selected >= 0 && !this.isGroup(this.selected);
  }

  // sides returns callers and callees of the selected function.
  sides(state) {
    return this.once('sides', [state.fn, state.focus, state.hide, state.fold], () => sandwich(this.tree, new Set([this.selected])));
  }

  // weigher returns how wide a node of a comparison is: both sides together, each in its own share or in values.
  weigher() {
    if (!this.compared) return undefined;
    const {nodes} = this.answer;
    const [now, base] = this.units(nodes.total[0], nodes.base_total[0]);
    return (total, baseTotal) => Math.max(0, total) / now + Math.max(0, baseTotal) / base;
  }

  // units returns what the values of both sides are divided by, so that they can be compared.
  units(total, baseTotal) {
    return this.scale.byShare ? [total || 1, baseTotal || 1] : [1, 1 / this.scale.factor];
  }

  // style returns how a tree of this model is painted.
  style(tree, state, theme) {
    const {frames} = this;
    const {matched} = this.found;
    const common = {
      theme, selected: this.selected,
      hatched: (node) => tree.frame[node] >= 0 && ['inlined', 'unknown'].includes(kindOf(frames, tree.frame[node])),
      matched: (node) => (matched ? (tree.frame[node] >= 0 ? matched[tree.function(node)] : null) : null),
    };
    if (!tree.baseTotal) {
      const fill = this.once('colors', [state.color, theme.dark], () => colorer(frames, state.color, theme));
      const value = (node) => `${formatValue(tree.total[node], this.unit)} · ${formatShare(tree.total[node], tree.total[0])}`;
      return {...common, fill: (node) => fill(tree.frame[node]), label: (node) => tree.label(node), value};
    }
    const [now, base] = this.units(this.total, this.baseTotal);
    const change = (node) => {
      const [a, b] = [tree.total[node] / now, tree.baseTotal[node] / base];
      return (a - b) / (Math.max(Math.abs(a), Math.abs(b)) || 1);
    };
    return {
      ...common,
      fill: (node) => changeColor(change(node), state.palette, theme),
      label: (node) => (node === 0 || Math.abs(change(node)) < 0.004 ? '' : `${formatChange(tree.total[node] / now, tree.baseTotal[node] / base)} `) + tree.label(node),
    };
  }
}
