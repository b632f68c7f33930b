// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// The call tree of one answer in typed arrays, and what is computed from it: focus, hide, sandwich, the table of functions,
// search. Pure functions; each takes a few milliseconds for 100,000 nodes.

import {clean, hash32, shortKey} from './format.js';

// Frames are the columns of an answer's frames, and the functions they belong to: one for each name and file.
export class Frames {
  constructor(columns) {
    const count = columns.name?.length ?? 0;
    this.count = count;
    this.name = columns.name ?? [];
    this.file = columns.file ?? [];
    this.line = columns.line ?? [];
    this.mapping = columns.mapping ?? [];
    this.buildID = columns.build_id ?? [];
    this.kind = columns.kind ?? [];
    this.functionOf = new Int32Array(count); // frame → function
    this.functions = []; // function → its first frame
    const seen = new Map();
    this.named = new Map(); // name → how many functions have it
    for (let i = 0; i < count; i++) {
      const key = `${this.name[i]}\0${this.isGroup(i) ? '\0' : this.file[i] ?? ''}`;
      let id = seen.get(key);
      if (id === undefined) {
        id = this.functions.length;
        seen.set(key, id);
        this.functions.push(i);
        this.named.set(this.name[i], (this.named.get(this.name[i]) ?? 0) + 1);
      }
      this.functionOf[i] = id;
    }
    this.labels = new Array(this.functions.length);
  }

  // isGroup reports whether a frame is a value of the attribute that samples are grouped by, not a function.
  isGroup(frame) {
    return this.kind[frame] === 'group';
  }

  functionName(id) {
    return this.name[this.functions[id]];
  }

  // label returns a function's name for display, cut at 400 characters.
  label(id) {
    return this.labels[id] ??= clean(this.functionName(id)) || '(no name)';
  }

  // key returns the text that identifies a function in a URL: its name, so that the link holds for the next version, too, and its file only
  // where another function has that name.
  key(id) {
    const frame = this.functions[id];
    const name = shortKey(this.name[frame]);
    return this.named.get(this.name[frame]) > 1 && this.file[frame] ? `${name} ${shortKey(this.file[frame])}` : name;
  }

  // find returns the functions with a key, or those with its name if no key is equal: their file is another one here.
  find(key) {
    const found = new Set();
    const named = new Set();
    for (let id = 0; key && id < this.functions.length; id++) {
      const name = this.functionName(id);
      // A key starts with its name's start, which is cheap to compare.
      if (!key.startsWith(name.slice(0, 180))) continue;
      if (this.key(id) === key) found.add(id);
      else if (key === shortKey(name) || key.startsWith(`${shortKey(name)} `)) named.add(id);
    }
    return found.size ? found : named;
  }
}

// Tree is a call tree in the order of a depth-first walk, the heaviest child first; node 0 is the root. Node i's subtree is
// [i, end[i]). baseSelf and baseTotal are null unless the answer compares two selections.
class Tree {
  constructor(frames, nodes, weigh = (total) => total) {
    this.frames = frames;
    const {frame, parent, total, baseTotal} = nodes;
    const count = frame.length;
    this.count = count;
    const weight = new Float64Array(count);
    for (let i = 0; i < count; i++) weight[i] = Math.max(0, weigh(total[i], baseTotal ? baseTotal[i] : 0));

    const {first, children} = childLists(parent, weight);
    const order = new Int32Array(count); // new index → old
    const moved = new Int32Array(count); // old index → new
    this.depth = new Int32Array(count);
    this.end = new Int32Array(count).fill(count);
    const stack = [0];
    const depthOf = new Int32Array(count);
    for (let next = 0; stack.length; next++) {
      const node = stack.pop();
      order[next] = node;
      moved[node] = next;
      this.depth[next] = depthOf[node];
      for (let c = first[node + 1] - 1; c >= first[node]; c--) {
        depthOf[children[c]] = depthOf[node] + 1;
        stack.push(children[c]);
      }
    }
    const move = (column, type) => {
      const out = new type(count);
      for (let i = 0; i < count; i++) out[i] = column[order[i]];
      return out;
    };
    this.frame = move(frame, Int32Array);
    this.parent = move(parent, Int32Array);
    for (let i = 1; i < count; i++) this.parent[i] = moved[this.parent[i]];
    this.self = move(nodes.self, Float64Array);
    this.total = move(total, Float64Array);
    this.baseSelf = baseTotal ? move(nodes.baseSelf, Float64Array) : null;
    this.baseTotal = baseTotal ? move(baseTotal, Float64Array) : null;
    this.weight = move(weight, Float64Array);
    closeSubtrees(this.depth, this.end);
  }

  // function returns the function of a node, -1 for the root.
  function(node) {
    return this.frame[node] < 0 ? -1 : this.frames.functionOf[this.frame[node]];
  }

  label(node) {
    const id = this.function(node);
    return id < 0 ? 'total' : this.frames.label(id);
  }

  // path returns the nodes from the root to a node, both included.
  path(node) {
    const nodes = [];
    for (let i = node; i >= 0; i = this.parent[i]) nodes.push(i);
    return nodes.reverse();
  }

  // key returns the text that identifies a node in a URL, and in the tree of another answer: a hash of its path. Siblings can be of one
  // function and differ in kind.
  key(node) {
    if (node === 0) return ''; // the only key that most pages need: it costs nothing
    if (!this.keys) {
      this.keys = new Uint32Array(2 * this.count);
      const {frames} = this;
      const hashes = Array.from(frames.functionOf, (id, frame) => hash32(`${frames.key(id)}\0${frames.kind[frame] ?? ''}`));
      for (let i = 1; i < this.count; i++) {
        const hash = hashes[this.frame[i]];
        const above = 2 * this.parent[i];
        this.keys[2 * i] = Math.imul(this.keys[above] ^ hash, 0x01000193) + 1;
        this.keys[2 * i + 1] = Math.imul(this.keys[above + 1] + hash, 0x85ebca6b) + 1;
      }
    }
    const hex = (n) => n.toString(16).padStart(8, '0');
    return hex(this.keys[2 * node]) + hex(this.keys[2 * node + 1]);
  }

  // find returns the node with a key, -1 if there is no such node.
  find(key) {
    if (!/^[0-9a-f]{16}$/.test(key)) return -1;
    this.key(this.count - 1);
    const [a, b] = [parseInt(key.slice(0, 8), 16), parseInt(key.slice(8), 16)];
    for (let i = 1; i < this.count; i++) if (this.keys[2 * i] === a && this.keys[2 * i + 1] === b) return i;
    return -1;
  }
}

// childLists returns each node's children, the heaviest first, as ranges [first[i], first[i+1]) of one array.
function childLists(parent, weight) {
  const count = parent.length;
  const first = new Int32Array(count + 1);
  for (let i = 1; i < count; i++) first[parent[i] + 1]++;
  for (let i = 0; i < count; i++) first[i + 1] += first[i];
  const next = first.slice();
  const children = new Int32Array(Math.max(0, count - 1));
  for (let i = 1; i < count; i++) children[next[parent[i]]++] = i;
  for (let i = 0; i < count; i++) {
    const [low, high] = [first[i], first[i + 1]];
    if (high - low > 16) children.subarray(low, high).sort((a, b) => weight[b] - weight[a] || a - b);
    else sortFew(children, low, high, weight);
  }
  return {first, children};
}

// sortFew sorts by insertion, which saves a call of sort for most nodes.
function sortFew(nodes, low, high, weight) {
  for (let i = low + 1; i < high; i++) {
    const node = nodes[i];
    let at = i;
    for (; at > low && weight[nodes[at - 1]] < weight[node]; at--) nodes[at] = nodes[at - 1];
    nodes[at] = node;
  }
}

// closeSubtrees sets end[i] to the first node after i that is not below it.
function closeSubtrees(depth, end) {
  const open = [];
  for (let i = 0; i < depth.length; i++) {
    while (open.length && depth[open[open.length - 1]] >= depth[i]) end[open.pop()] = i;
    open.push(i);
  }
}

// readTree returns the tree of an answer of /api/flamegraph or /api/diff.
export function readTree(frames, nodes, weigh) {
  return new Tree(frames, {frame: nodes.frame, parent: nodes.parent, self: nodes.self, total: nodes.total, baseSelf: nodes.base_self, baseTotal: nodes.base_total}, weigh);
}

// Merged collects at most `capacity` nodes, of which no two siblings have the same frame.
class Merged {
  constructor({frames, compared, capacity, root = -1}) {
    Object.assign(this, {frames, compared, count: 1});
    this.frame = new Int32Array(capacity);
    this.parent = new Int32Array(capacity);
    this.self = new Float64Array(capacity);
    this.total = new Float64Array(capacity);
    this.baseSelf = compared && new Float64Array(capacity);
    this.baseTotal = compared && new Float64Array(capacity);
    this.frame[0] = root;
    this.parent[0] = -1;
    // An open hash table of nodes by parent and frame: node 0, the root, marks an empty slot.
    this.slots = new Int32Array(2 ** Math.ceil(Math.log2(2 * capacity + 2)));
  }

  // child returns the node of a frame below a parent, which it adds if it is new.
  child(parent, frame) {
    const {slots} = this;
    let slot = Math.imul(Math.imul(parent, 0x9e3779b1) ^ frame, 0x85ebca6b);
    slot = (slot ^ (slot >>> 15)) & (slots.length - 1);
    for (; slots[slot]; slot = (slot + 1) & (slots.length - 1)) {
      const node = slots[slot];
      if (this.parent[node] === parent && this.frame[node] === frame) return node;
    }
    const node = this.count++;
    slots[slot] = node;
    this.frame[node] = frame;
    this.parent[node] = parent;
    return node;
  }

  add(node, self, total, baseSelf = 0, baseTotal = 0) {
    this.self[node] += self;
    this.total[node] += total;
    if (!this.compared) return;
    this.baseSelf[node] += baseSelf;
    this.baseTotal[node] += baseTotal;
  }

  tree(weigh) {
    const {frames, frame, parent, self, total, baseSelf, baseTotal, count} = this;
    const nodes = {frame, parent, self, total, ...(this.compared ? {baseSelf, baseTotal} : {})};
    for (const [name, column] of Object.entries(nodes)) nodes[name] = column.subarray(0, count);
    return new Tree(frames, nodes, weigh);
  }
}

// transform returns the tree of the samples that pass through a focused function (a Set of functions, empty for all),
// without the frames of hidden functions: what they called moves to their callers. With fold, what a recursive call called moves to the first
// call of the function.
export function transform(tree, {focus, hide, fold = false, weigh}) {
  if (!focus.size && !hide.size && !fold) return tree;
  const {count, frame, parent, end, frames} = tree;
  const keep = focused(tree, focus);
  const merged = new Merged({frames, compared: Boolean(tree.baseTotal), capacity: count});
  const target = new Int32Array(count);
  // With a focus, the nodes above it keep the sum of what passes through the focus.
  const totals = {total: tree.total.slice(), baseTotal: tree.baseTotal?.slice()};
  if (focus.size) {
    for (const column of [totals.total, totals.baseTotal]) {
      if (!column) continue;
      for (let i = 0; i < count; i++) if (keep[i] !== inside) column[i] = 0;
      for (let i = count - 1; i > 0; i--) if (keep[parent[i]] === above) column[parent[i]] += column[i];
    }
  }
  const calls = fold && new FirstCalls(frames.functions.length);
  for (let i = 0; i < count; i++) {
    if (keep[i] === outside) {
      i = end[i] - 1;
      continue;
    }
    const self = keep[i] === inside ? tree.self[i] : 0;
    const baseSelf = keep[i] === inside ? tree.baseSelf?.[i] : 0;
    if (i > 0 && hide.has(frames.functionOf[frame[i]])) {
      target[i] = target[parent[i]];
      merged.add(target[i], self, 0, baseSelf, 0);
      continue;
    }
    const first = calls && i > 0 ? calls.enter(frames.functionOf[frame[i]], i, end[i]) : i;
    if (first !== i) {
      target[i] = target[first];
      merged.add(target[i], self, 0, baseSelf, 0);
      continue;
    }
    if (i > 0) target[i] = merged.child(target[parent[i]], frame[i]);
    merged.add(target[i], self, totals.total[i], baseSelf, totals.baseTotal?.[i]);
  }
  return merged.tree(weigh);
}

// FirstCalls finds, during a depth-first walk, the first call of a function on the path to a node.
class FirstCalls {
  constructor(functions) {
    this.node = new Int32Array(functions);
    this.end = new Int32Array(functions); // of the node's subtree
  }

  enter(id, node, end) {
    if (node < this.end[id]) return this.node[id];
    this.node[id] = node;
    this.end[id] = end;
    return node;
  }
}

// isRecursive reports whether a function is called below itself.
export function isRecursive({count, frame, end, frames}) {
  const calls = new FirstCalls(frames.functions.length);
  for (let i = 1; i < count; i++) {
    if (!frames.isGroup(frame[i]) && calls.enter(frames.functionOf[frame[i]], i, end[i]) !== i) return true;
  }
  return false;
}

const [outside, above, inside] = [0, 1, 2];

// focused returns for each node whether it is in the subtree of a focused function, above one, or outside.
function focused(tree, focus) {
  const {count, frame, parent, end, frames} = tree;
  const keep = new Uint8Array(count).fill(focus.size ? outside : inside);
  if (!focus.size) return keep;
  keep[0] = above;
  for (let i = 1; i < count; i++) {
    if (!focus.has(frames.functionOf[frame[i]])) continue;
    keep.fill(inside, i, end[i]);
    for (let p = parent[i]; p > 0 && keep[p] === outside; p = parent[p]) keep[p] = above;
    i = end[i] - 1;
  }
  return keep;
}

// callerNodes bounds the tree of callers, whose paths can be many and long.
const callerNodes = 400_000;

// sandwich returns the callers and the callees of functions (a Set), each a tree whose root is the function. Both count a
// recursion once, from its first call. If there would be very many callers, all paths are cut at the same distance from
// the function.
export function sandwich(tree, functions) {
  const {count, frame, parent, depth, end, frames, baseTotal} = tree;
  const calls = [];
  let steps = 1;
  for (let i = 1; i < count; i++) {
    if (!functions.has(frames.functionOf[frame[i]])) continue;
    calls.push(i);
    steps += depth[i];
    i = end[i] - 1;
  }
  const farthest = steps <= callerNodes ? Infinity : Math.ceil(callerNodes / calls.length);
  const shared = {
    frames, compared: Boolean(baseTotal),
    root: functions.size ? frames.functions[functions.values().next().value] : -1,
  };
  const callers = new Merged({...shared, capacity: Math.min(steps, callerNodes + calls.length + 1)});
  const callees = new Merged({...shared, capacity: count});
  const target = new Int32Array(count);
  for (const i of calls) {
    for (let n = i; n < end[i]; n++) {
      target[n] = n === i ? 0 : callees.child(target[parent[n]], frame[n]);
      callees.add(target[n], tree.self[n], tree.total[n], tree.baseSelf?.[n], baseTotal?.[n]);
    }
    let at = 0;
    callers.add(at, 0, tree.total[i], 0, baseTotal?.[i]);
    for (let p = parent[i], far = 0; p > 0 && far < farthest; p = parent[p], far++) {
      at = callers.child(at, frame[p]);
      callers.add(at, 0, tree.total[i], 0, baseTotal?.[i]);
    }
    callers.add(at, tree.total[i], 0, baseTotal?.[i], 0);
  }
  return {callers: callers.tree(), callees: callees.tree()};
}

// functionTotals returns self and total of each function, a recursion counted once.
export function functionTotals(tree) {
  const {count, frame, end, frames} = tree;
  const size = frames.functions.length;
  const rows = {self: new Float64Array(size), total: new Float64Array(size), present: new Uint8Array(size)};
  if (tree.baseTotal) Object.assign(rows, {baseSelf: new Float64Array(size), baseTotal: new Float64Array(size)});
  const until = new Int32Array(size); // the end of the last subtree that a function was counted for
  for (let i = 1; i < count; i++) {
    const id = frames.functionOf[frame[i]];
    if (frames.isGroup(frame[i])) continue;
    rows.present[id] = 1;
    rows.self[id] += tree.self[i];
    if (rows.baseSelf) rows.baseSelf[id] += tree.baseSelf[i];
    if (i < until[id]) continue;
    until[id] = end[i];
    rows.total[id] += tree.total[i];
    if (rows.baseTotal) rows.baseTotal[id] += tree.baseTotal[i];
  }
  return rows;
}

// search returns which functions have a name that matches (null without a predicate), and what passes through at least one of them.
export function search(tree, matches) {
  if (!matches) return {matched: null, total: 0, functions: 0};
  const {count, frame, end, frames} = tree;
  const matched = Uint8Array.from(frames.functions, (first) => (!frames.isGroup(first) && matches(frames.name[first]) ? 1 : 0));
  let total = 0;
  const present = new Set();
  for (let i = 1, until = 0; i < count; i++) {
    const id = frames.functionOf[frame[i]];
    if (!matched[id]) continue;
    present.add(id);
    if (i < until) continue;
    until = end[i];
    total += tree.total[i];
  }
  return {matched, total, functions: present.size};
}
