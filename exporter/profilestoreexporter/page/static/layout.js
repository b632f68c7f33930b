// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// The positions of a tree's nodes: x and width in units of the tree's weight, rows by depth. Pure functions.

// layout returns the positions of a tree's nodes, and for each row its nodes from left to right.
export function layout(tree) {
  const {count, depth, parent, weight} = tree;
  const x = new Float64Array(count);
  const cursor = new Float64Array(count); // where a node's next child starts
  let rows = 0;
  for (let i = 0; i < count; i++) {
    if (i > 0) {
      x[i] = cursor[parent[i]];
      cursor[parent[i]] += weight[i];
    }
    cursor[i] = x[i];
    if (depth[i] >= rows) rows = depth[i] + 1;
  }
  // A depth-first walk visits the nodes of a row from left to right.
  const first = new Int32Array(rows + 1);
  for (let i = 0; i < count; i++) first[depth[i] + 1]++;
  for (let r = 0; r < rows; r++) first[r + 1] += first[r];
  const next = first.slice();
  const nodes = new Int32Array(count);
  for (let i = 0; i < count; i++) nodes[next[depth[i]]++] = i;
  return {tree, x, weight, rows, first, nodes, width: weight[0]};
}

// seek returns the first position in [low, high) of a row's nodes whose right edge is to the right of x.
function seek({x, weight, nodes}, low, high, at) {
  while (low < high) {
    const middle = (low + high) >> 1;
    const node = nodes[middle];
    if (x[node] + weight[node] <= at) low = middle + 1;
    else high = middle;
  }
  return low;
}

// hit returns the node of a row at x, -1 if there is no such node.
export function hit(at, row, x) {
  if (row < 0 || row >= at.rows) return -1;
  const position = seek(at, at.first[row], at.first[row + 1], x);
  if (position === at.first[row + 1]) return -1;
  const node = at.nodes[position];
  return at.x[node] <= x ? node : -1;
}

// visit calls draw(node, x0, x1), in pixels, for each visible node of a row, and skip(node, x0, x1) for each run of nodes that
// are too narrow, with the first of them. The view is [from, until) in units of weight, drawn at scale pixels per unit. The
// cost depends on the pixels, not on the nodes: after a narrow node the search continues at the next pixel.
export function visit(at, row, {from, until, scale}, draw, skip, narrow = 1) {
  const high = at.first[row + 1];
  let position = seek(at, at.first[row], high, from);
  while (position < high) {
    const node = at.nodes[position];
    const left = at.x[node];
    if (left >= until) return;
    const right = left + at.weight[node];
    if ((right - left) * scale >= narrow) {
      draw(node, (left - from) * scale, (right - from) * scale);
      position++;
      continue;
    }
    // All that starts within this pixel and is narrow is one run.
    const edge = left + narrow / scale;
    let next = position + 1;
    let last = right;
    if (next < high && at.x[at.nodes[next]] + at.weight[at.nodes[next]] <= edge) {
      next = Math.max(next, seek(at, next, high, edge));
      const before = at.nodes[next - 1];
      last = at.x[before] + at.weight[before];
    }
    skip(node, (left - from) * scale, (last - from) * scale);
    position = next;
  }
}
