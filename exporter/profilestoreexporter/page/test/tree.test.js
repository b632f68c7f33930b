// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

import assert from 'node:assert/strict';
import {test} from 'node:test';
import {hit, layout, visit} from '../static/layout.js';
import {Search} from '../static/search.js';
import {Frames, functionTotals, isRecursive, readTree, sandwich, search, transform} from '../static/tree.js';

// answer returns the columns of an answer for stacks: {'main;work;json': 5}.
function answer(stacks, base) {
  const names = new Map();
  const nodes = {frame: [-1], parent: [-1], self: [0], total: [0], ...(base ? {base_self: [0], base_total: [0]} : {})};
  const seen = new Map();
  for (const [column, source] of [['', stacks], ['base_', base ?? {}]]) {
    for (const [stack, value] of Object.entries(source)) {
      let at = 0;
      const add = (name) => { nodes[`${column}total`][at] += value; if (name === undefined) nodes[`${column}self`][at] += value; };
      for (const name of stack.split(';')) {
        add(name);
        if (!names.has(name)) names.set(name, names.size);
        const key = `${at} ${name}`;
        if (!seen.has(key)) {
          seen.set(key, nodes.frame.length);
          nodes.frame.push(names.get(name));
          nodes.parent.push(at);
          for (const values of ['self', 'total', ...(base ? ['base_self', 'base_total'] : [])]) nodes[values].push(0);
        }
        at = seen.get(key);
      }
      add();
    }
  }
  const frames = {name: [...names.keys()], file: [], line: [], mapping: [], build_id: [], kind: []};
  return {frames: new Frames(frames), nodes};
}

// folded returns a tree as stacks with their self values.
function folded(tree, column = 'self') {
  const out = {};
  for (let i = 0; i < tree.count; i++) {
    if (tree[column][i]) out[tree.path(i).filter((n) => tree.frame[n] >= 0).map((n) => tree.frames.functionName(tree.function(n))).join(';')] = tree[column][i];
  }
  return out;
}

function build(stacks, base, weigh) {
  const {frames, nodes} = answer(stacks, base);
  return {frames, tree: readTree(frames, nodes, weigh)};
}

const stacks = {'main;work;json': 5, 'main;work': 2, 'main;idle;json;work': 3, 'gc': 1};

test('a tree is in depth-first order, the heaviest first, with closed subtrees', () => {
  const {tree} = build(stacks);
  assert.deepEqual(folded(tree), stacks);
  assert.deepEqual([...tree.total].slice(0, 4), [11, 10, 7, 5]);
  for (let i = 1; i < tree.count; i++) {
    assert.ok(tree.parent[i] < i && i < tree.end[tree.parent[i]] && tree.end[i] <= tree.end[tree.parent[i]]);
    assert.equal(tree.depth[i], tree.depth[tree.parent[i]] + 1);
  }
});

test('what samples are grouped by is no function', () => {
  const {frames, nodes} = answer({'eu;main;work': 5, 'us;main': 2});
  frames.kind = ['group', '', '', 'group'];
  const again = new Frames(frames);
  const tree = readTree(again, nodes);
  const rows = functionTotals(tree);
  assert.deepEqual(again.functions.filter((_, id) => rows.present[id]).map((first) => again.name[first]), ['main', 'work']);
  assert.equal(search(tree, (name) => name.includes('e')).total, 0);
});

test('functions: a recursion counts once', () => {
  const {tree, frames} = build({'f;g;f;f': 4, 'g;f': 1});
  const rows = functionTotals(tree);
  const [f, g] = ['f', 'g'].map((name) => [...frames.find(name)][0]);
  assert.deepEqual([rows.self[f], rows.total[f], rows.self[g], rows.total[g]], [5, 5, 0, 5]);
});

test('search: the share of what passes through a match, each sample once', () => {
  const {tree} = build(stacks);
  const found = (query) => {
    const finder = new Search(() => {});
    finder.find(query, tree.frames.name);
    return search(tree, finder.matches);
  };
  assert.deepEqual([found('JSON').total, found('JSON').functions], [8, 1]);
  assert.equal(found('o').total, 10); // work and json
  assert.equal(found('').matched, null);
});

test('an expression is matched by a worker, which is ended when its time is up', (t) => {
  t.mock.timers.enable({apis: ['setTimeout']});
  const workers = [];
  globalThis.Worker = class {
    constructor() { workers.push(this); }
    postMessage(data) { this.asked = data; }
    terminate() { this.ended = true; }
  };
  let changes = 0;
  const finder = new Search(() => changes++);
  const names = ['main', 'work'];
  finder.find('/^w/', names);
  assert.deepEqual([finder.matches, finder.note, workers[0].asked], [null, 'searching …', {source: '^w', names}]);
  workers[0].onmessage({data: ['work']});
  assert.deepEqual([names.map(finder.matches), finder.note, changes, workers[0].ended], [[false, true], '', 1, true]);
  finder.find('/^w/', names);
  assert.equal(workers.length, 1, 'nothing has changed');
  finder.find('/^w/', ['wait']);
  assert.ok(finder.matches('work'), 'the earlier result stays until the next');
  finder.find('/(a+)+b/', names);
  assert.ok(workers[1].ended);
  t.mock.timers.tick(5000);
  assert.deepEqual([finder.matches, finder.note, workers[2].ended, changes], [null, 'this expression takes too long', true, 2]);
  finder.find('/(a+)+b/', ['new']);
  assert.equal(workers.length, 3, 'it is not tried again for new names');
  finder.find('main', names);
  assert.ok(finder.matches('main'));
});

test('focus keeps what passes through, hide moves callees to callers', () => {
  const {tree, frames} = build(stacks);
  const set = (...names) => new Set(names.flatMap((name) => [...frames.find(name)]));
  const focus = transform(tree, {focus: set('json'), hide: set()});
  assert.deepEqual(folded(focus), {'main;work;json': 5, 'main;idle;json;work': 3});
  assert.equal(focus.total[0], 8);
  const hidden = transform(tree, {focus: set(), hide: set('json', 'main')});
  assert.deepEqual(folded(hidden), {work: 7, 'idle;work': 3, gc: 1});
  assert.equal(hidden.total[0], 11);
  assert.deepEqual(folded(transform(tree, {focus: set('json'), hide: set('main', 'idle')})), {'work;json': 5, 'json;work': 3});
  assert.equal(transform(tree, {focus: set(), hide: set()}), tree);
});

test('sandwich: callers and callees of all calls, a recursion from its first', () => {
  const {tree, frames} = build({'a;f;x': 2, 'b;f;x': 3, 'b;f;f;y': 4, 'f': 1});
  const {callers, callees} = sandwich(tree, frames.find('f'));
  assert.deepEqual(folded(callees), {f: 1, 'f;x': 5, 'f;f;y': 4});
  assert.deepEqual(folded(callers), {f: 1, 'f;a': 2, 'f;b': 7});
  assert.deepEqual([callers.total[0], callees.total[0]], [10, 10]);
});

test('sandwich of a comb of long paths is bounded', () => {
  // A chain of 20,000 functions, each of which calls f: all paths together are 2e8 frames.
  const size = 20_000;
  const frames = new Frames({name: ['f', ...Array.from({length: size}, (_, i) => `c${i}`)], file: [], line: []});
  const nodes = {frame: [-1], parent: [-1], self: [], total: []};
  for (let i = 0, chain = 0; i < size; i++) {
    nodes.frame.push(i + 1, 0);
    nodes.parent.push(chain, nodes.frame.length - 2);
    chain = nodes.frame.length - 2;
  }
  nodes.self = nodes.frame.map((frame) => (frame === 0 ? 1 : 0));
  nodes.total = nodes.self.slice();
  for (let i = nodes.frame.length - 1; i > 0; i--) nodes.total[nodes.parent[i]] += nodes.total[i];
  const {callers} = sandwich(readTree(frames, nodes), new Set([0]));
  assert.ok(callers.count <= 450_000, `${callers.count} nodes`);
  assert.equal(callers.total[0], size);
});

test('a comparison keeps both sides, and is as wide as both', () => {
  const {tree} = build({'a;b': 6, 'a;c': 2}, {'a;b': 1, d: 3}, (now, before) => now / 8 + before / 4);
  assert.deepEqual(folded(tree), {'a;b': 6, 'a;c': 2});
  assert.deepEqual(folded(tree, 'baseSelf'), {'a;b': 1, d: 3});
  assert.equal(tree.weight[0], 2);
  assert.equal(functionTotals(tree).baseTotal.reduce((a, b) => a + b), 5);
  const focus = transform(tree, {focus: tree.frames.find('a'), hide: tree.frames.find('c')});
  assert.deepEqual([folded(focus), folded(focus, 'baseSelf')], [{'a;b': 6, a: 2}, {'a;b': 1}]);
  assert.deepEqual([focus.total[0], focus.baseTotal[0]], [8, 1]);
});

test('keys find a function and a node again in another answer', () => {
  const one = build(stacks).tree;
  const other = build({'x;y': 9, ...stacks}).tree;
  for (let i = 0; i < one.count; i++) {
    const again = other.find(one.key(i));
    if (i === 0) assert.equal(one.key(i), '');
    else assert.deepEqual(other.path(again).map((n) => other.label(n)), one.path(i).map((n) => one.label(n)));
  }
  assert.equal(one.find('0000000000000000'), -1);
  assert.equal(one.find('<script>'), -1);
  const long = build({[`${'N'.repeat(1 << 20)};x`]: 1});
  const key = long.frames.key(0);
  assert.ok(key.length < 300);
  assert.deepEqual([...long.frames.find(key)], [0]);
});

test('a link to a function holds for the next version, which was built elsewhere', () => {
  const before = new Frames({name: ['main', 'init', 'init'], file: ['/v1/m.go', '/v1/a.c', '/v1/b.c']});
  const after = new Frames({name: ['init', 'main', 'init'], file: ['/v2/b.c', '/v2/m.go', '/v1/a.c']});
  assert.equal(before.key(0), 'main');
  assert.deepEqual([...after.find(before.key(0))], [1]);
  assert.deepEqual([...after.find('main /v1/m.go')], [1], 'a link with a file of another build');
  assert.deepEqual([...after.find(before.key(1))], [2], 'two functions of a name are told apart');
  assert.deepEqual([...after.find(before.key(2))], [0, 2], 'unless the file is gone');
});

test('siblings of one function and another kind have other keys', () => {
  const {nodes} = answer({'main;f': 5, 'main;g': 2});
  const tree = readTree(new Frames({name: ['main', 'f', 'f'], file: ['m.go', 'f.go', 'f.go'], kind: ['user', 'user', 'inlined']}), nodes);
  assert.equal(tree.function(2), tree.function(3));
  assert.deepEqual([2, 3].map((node) => tree.find(tree.key(node))), [2, 3]);
});

test('layout: a row is found by its x, and narrow nodes are one run', () => {
  const {tree} = build(Object.fromEntries([['wide', 1000], ...Array.from({length: 3000}, (_, i) => [`n${i}`, 1])]));
  const at = layout(tree);
  assert.equal(at.width, 4000);
  assert.equal(tree.label(hit(at, 1, 10)), 'wide');
  assert.equal(hit(at, 1, 4000), -1);
  assert.equal(hit(at, 9, 10), -1);
  const gap = layout(build({'a;b': 1, a: 9, 'c;d': 5}).tree);
  assert.deepEqual([0.5, 5, 10.5].map((x) => hit(gap, 2, x)).map((node) => (node < 0 ? null : gap.tree.label(node))), ['b', null, 'd']);
  let drawn = 0;
  let runs = 0;
  let covered = 0;
  visit(at, 1, {from: 0, until: 4000, scale: 0.1}, (_, a, b) => { drawn++; covered += b - a; }, (_, a, b) => { runs++; covered += b - a; });
  assert.equal(drawn, 1);
  assert.ok(runs <= 301, `${runs} runs`);
  assert.ok(Math.abs(covered - 400) < 1e-6, `${covered} pixels are covered`);
});

test('nodes without a width and negative values do not harm', () => {
  const {tree} = build({'a;b': -5, 'a;c': 0, d: 2});
  const at = layout(tree);
  assert.equal(at.width, 0); // the root's total is negative: nothing to draw, and nothing fails
  visit(at, 1, {from: 0, until: 1, scale: 100}, () => {}, () => {});
  const empty = readTree(new Frames({}), {frame: [-1], parent: [-1], self: [0], total: [0]});
  assert.equal(layout(empty).rows, 1);
});

test('a hundred thousand nodes cost time in proportion', () => {
  const chain = {frame: [-1], parent: [-1], self: [0], total: [1]};
  for (let i = 1; i < 100_000; i++) {
    chain.frame.push(0);
    chain.parent.push(i - 1);
    chain.self.push(i === 99_999 ? 1 : 0);
    chain.total.push(1);
  }
  const tree = readTree(new Frames({name: ['f'], file: [''], line: [1]}), chain);
  assert.equal(layout(tree).rows, 100_000);
  assert.equal(functionTotals(tree).total[0], 1);
  assert.equal(transform(tree, {focus: new Set([0]), hide: new Set()}).count, 100_000);
  assert.equal(sandwich(tree, new Set([0])).callees.count, 99_999);
});

test('collapsed recursion: what a recursive call called moves to the first call', () => {
  const {tree} = build({'main;f;f;f;g': 3, 'main;f;g': 2, 'main;f;h;f;x': 4, 'main;f;h': 1, g: 5});
  const none = {focus: new Set(), hide: new Set()};
  const collapsed = transform(tree, {...none, fold: true});
  assert.deepEqual(folded(collapsed), {'main;f;g': 5, 'main;f;h': 1, 'main;f;x': 4, g: 5});
  assert.equal(collapsed.total[0], tree.total[0]);
  const f = collapsed.frame.findIndex((frame) => frame >= 0 && collapsed.frames.name[frame] === 'f');
  assert.equal(collapsed.total[f], 10, 'a recursion counts once');
  assert.equal(isRecursive(tree), true);
  assert.equal(isRecursive(collapsed), false);
});
