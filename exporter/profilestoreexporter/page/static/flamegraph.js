// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// A flame graph or icicle graph in an element, with zoom, pan, hover and keys. The canvas stays in view; the scroller around
// it is as tall as the tree.

import {el} from './dom.js';
import {layout, hit} from './layout.js';
import {mapWidth, Minimap} from './minimap.js';
import {paint, rowHeight} from './paint.js';

const still = matchMedia('(prefers-reduced-motion: reduce)');

// FlameGraph calls on.choose(node, zoom) when a frame is selected, and zoomed to if zoom is true, on.menu(node, x, y), and
// on.hover(node, x, y), with node -1 when the pointer leaves.
export class FlameGraph {
  constructor({label, upwards = false, on}) {
    Object.assign(this, {upwards, on, tree: null, at: null, view: {from: 0, until: 1}, zoomed: 0, hovered: -1, cursor: 0, style: null});
    this.canvas = el('canvas', {tabindex: 0, role: 'application', 'aria-label': `${label}. Arrow keys select a frame, Enter zooms, Escape zooms out; the table has the same functions as text.`});
    this.minimap = new Minimap({scroll: (share) => { this.element.scrollTop = share * this.element.scrollHeight - this.height / 2; }});
    this.sizer = el('div', {class: 'sizer'}, this.canvas, this.minimap.canvas);
    this.element = el('div', {class: 'flamegraph'}, this.sizer);
    this.context = this.canvas.getContext('2d', {alpha: false});
    this.element.addEventListener('scroll', () => {
      this.draw();
      this.hover();
    });
    new ResizeObserver(() => this.resize()).observe(this.element);
    this.listen();
  }

  // show displays a tree, zoomed to a node, with the cursor of the keys at another (-1 for none). A view that the user has moved is
  // kept while the zoomed node stays the same.
  show(tree, style, {zoomed = 0, cursor = -1, upwards = this.upwards} = {}) {
    const same = this.tree === tree;
    const turned = upwards !== this.upwards || !this.tree;
    const share = this.panned && {from: this.view.from / this.at.width, until: this.view.until / this.at.width};
    const stays = this.tree && this.tree.key(this.zoomed) === tree.key(zoomed);
    const moves = same && this.zoomed !== zoomed;
    Object.assign(this, {tree, style, upwards, zoomed});
    if (!same) {
      this.at = layout(tree);
      this.cursor = cursor < 0 ? zoomed : cursor;
      this.hovered = -1;
    }
    this.size();
    if (share && stays) this.view = {from: share.from * this.at.width, until: share.until * this.at.width};
    else if (!same || moves || !stays) this.move(this.extent(zoomed), moves);
    if (turned) this.element.scrollTop = upwards ? this.element.scrollHeight : 0;
    this.draw();
    if (!same) this.hover();
  }

  // hover tells what is below the pointer, which rests while the graph changes or scrolls below it.
  hover() {
    const node = this.pointer ? this.nodeAt(this.pointer) : -1;
    if (node !== this.hovered) {
      this.hovered = node;
      this.draw();
    }
    this.on.hover?.(node, this.pointer?.clientX, this.pointer?.clientY);
  }

  // extent returns the view in which a node fills the width.
  extent(node) {
    const {x, weight} = this.at;
    return {from: x[node], until: x[node] + (weight[node] || 1)};
  }

  // size makes the scroller as tall as the subtree of the zoomed frame.
  size() {
    if (!this.tree) return;
    const {depth, end} = this.tree;
    let deepest = 0;
    for (let i = this.zoomed; i < end[this.zoomed]; i++) if (depth[i] > deepest) deepest = depth[i];
    const fromBottom = this.element.scrollHeight - this.element.scrollTop;
    this.rows = deepest + 1;
    const height = Math.max(this.rows * rowHeight, this.element.clientHeight);
    this.sizer.style.height = `${height}px`;
    this.offset = this.upwards ? height - this.rows * rowHeight : 0;
    if (this.upwards) this.element.scrollTop = this.element.scrollHeight - fromBottom;
    const isDeep = this.rowsHeight > 1.5 * (this.height || Infinity);
    if (isDeep === Boolean(this.isDeep)) return;
    this.isDeep = isDeep;
    this.resize();
  }

  resize() {
    const {clientWidth, clientHeight} = this.element;
    const ratio = devicePixelRatio || 1;
    if (!clientWidth) return;
    // A graph that grows upwards stays at its root.
    const atRoot = this.upwards && (!this.height || this.element.scrollTop + this.height >= this.element.scrollHeight - 2);
    this.height = clientHeight;
    this.width = clientWidth - (this.isDeep ? mapWidth : 0);
    this.minimap.canvas.hidden = !this.isDeep;
    this.canvas.width = Math.round(this.width * ratio);
    this.canvas.height = Math.round(clientHeight * ratio);
    this.canvas.style.width = `${this.width}px`;
    this.canvas.style.height = `${clientHeight}px`;
    this.canvas.style.marginBottom = `-${clientHeight}px`; // the minimap is beside it
    this.size();
    if (atRoot) this.element.scrollTop = this.element.scrollHeight;
    this.paint();
  }

  // move changes the view, with a short animation unless the user prefers reduced motion.
  move(target, smooth) {
    cancelAnimationFrame(this.motion);
    this.panned = false;
    if (!smooth || still.matches) {
      this.view = target;
      this.draw();
      return;
    }
    const start = {...this.view};
    const begun = performance.now();
    const step = (now) => {
      const t = Math.min(1, Math.max(0, (now - begun) / 160));
      const eased = 1 - (1 - t) ** 3;
      this.view = {from: start.from + (target.from - start.from) * eased, until: start.until + (target.until - start.until) * eased};
      this.paint();
      if (t < 1) this.motion = requestAnimationFrame(step);
    };
    this.motion = requestAnimationFrame(step);
  }

  // draw paints once in the next animation frame, however often it is called.
  draw() {
    this.pending ??= requestAnimationFrame(() => this.paint());
  }

  paint() {
    cancelAnimationFrame(this.pending);
    this.pending = null;
    if (!this.tree || !this.width) return;
    const {at, view, rows, upwards, width, height, zoomed, hovered, style} = this;
    const {scrollTop, scrollHeight} = this.element;
    paint(this.context, {at, view, rows, upwards, width, height, zoomed, hovered, top: scrollTop - this.offset, ...style});
    if (this.isDeep) this.minimap.draw({at, view, rows, upwards, height, fill: style.fill, theme: style.theme, top: scrollTop / scrollHeight, bottom: (scrollTop + height) / scrollHeight});
  }

  // paintAll paints all rows of the view, for a picture.
  paintAll(context, height) {
    const {at, view, rows, upwards, width, zoomed, style} = this;
    paint(context, {at, view, rows, upwards, width, height, zoomed, hovered: -1, top: upwards ? this.rowsHeight - height : 0, ...style});
  }

  get rowsHeight() {
    return this.rows * rowHeight;
  }

  // nodeAt returns the node at a position of the pointer, -1 if there is no such node.
  nodeAt(event) {
    if (!this.tree) return -1;
    const box = this.canvas.getBoundingClientRect();
    const y = event.clientY - box.top + this.element.scrollTop - this.offset;
    const line = Math.floor(y / rowHeight);
    const row = this.upwards ? this.rows - 1 - line : line;
    return hit(this.at, row, this.weightAt(event));
  }

  weightAt(event) {
    const box = this.canvas.getBoundingClientRect();
    return this.view.from + (event.clientX - box.left) / this.width * (this.view.until - this.view.from);
  }

  listen() {
    const {canvas} = this;
    let drag = null;
    canvas.addEventListener('pointermove', (event) => {
      if (!event.buttons) drag = null; // it ended where the page did not hear of it
      if (drag) {
        const moved = event.clientX - drag.x;
        if (!drag.panned && Math.abs(moved) < 4) return;
        if (event.pointerType === 'touch') return;
        drag.panned = true;
        const span = drag.view.until - drag.view.from;
        this.pan(drag.view.from - moved / this.width * span, span);
        return;
      }
      this.pointer = event.pointerType === 'touch' ? null : event;
      this.hover();
    });
    canvas.addEventListener('pointerleave', () => this.leave());
    canvas.addEventListener('pointerdown', (event) => {
      if (event.button === 0) drag = {x: event.clientX, y: event.clientY, view: {...this.view}, panned: false};
    });
    addEventListener('pointerup', (event) => {
      const held = drag;
      drag = null;
      if (!held || held.panned || event.target !== canvas || Math.hypot(event.clientX - held.x, event.clientY - held.y) > 6) return;
      const node = this.nodeAt(event);
      if (node >= 0) this.choose(node, true);
    });
    canvas.addEventListener('contextmenu', (event) => {
      const node = this.nodeAt(event);
      if (node < 0) return;
      event.preventDefault();
      this.leave();
      this.choose(node, false);
      this.on.menu?.(node, event.clientX, event.clientY);
    });
    canvas.addEventListener('wheel', (event) => {
      if (!this.tree) return;
      const sideways = Math.abs(event.deltaX) > Math.abs(event.deltaY);
      if (!event.ctrlKey && !event.metaKey && !sideways) return;
      event.preventDefault();
      const span = this.view.until - this.view.from;
      if (sideways) {
        this.pan(this.view.from + event.deltaX / this.width * span, span);
        return;
      }
      const center = this.weightAt(event);
      const next = Math.min(this.at.width, Math.max(this.at.width * 1e-7, span * Math.exp(event.deltaY * 0.003)));
      this.pan(center - (center - this.view.from) * next / span, next);
    }, {passive: false});
    canvas.addEventListener('keydown', (event) => this.key(event));
  }

  leave() {
    this.pointer = null;
    if (this.hovered >= 0) {
      this.hovered = -1;
      this.draw();
    }
    this.on.hover?.(-1);
  }

  // pan shows span units from `from`, kept within the tree.
  pan(from, span) {
    cancelAnimationFrame(this.motion);
    const start = Math.max(0, Math.min(from, this.at.width - span));
    this.view = {from: start, until: start + span};
    this.panned = true;
    this.on.hover?.(-1);
    this.draw();
  }

  choose(node, zoom) {
    this.cursor = node;
    this.on.hover?.(-1);
    if (zoom && node === this.zoomed && this.panned) this.move(this.extent(node), true);
    this.on.choose(node, zoom);
  }

  key(event) {
    if (!this.tree || event.ctrlKey || event.metaKey || event.altKey) return;
    const {parent, end, depth} = this.tree;
    const at = this.cursor;
    const sibling = (step) => {
      const {nodes, first} = this.at;
      const row = nodes.subarray(first[depth[at]], first[depth[at] + 1]);
      return row[row.indexOf(at) + step] ?? at;
    };
    const [up, down] = this.upwards ? ['ArrowDown', 'ArrowUp'] : ['ArrowUp', 'ArrowDown'];
    const moves = {
      [up]: () => Math.max(0, parent[at]),
      [down]: () => (at + 1 < end[at] ? at + 1 : at),
      ArrowLeft: () => sibling(-1),
      ArrowRight: () => sibling(1),
      Home: () => 0,
    };
    if (event.key in moves) {
      event.preventDefault();
      this.choose(moves[event.key](), false);
      this.reveal(this.cursor);
    } else if (event.key === 'Enter') {
      this.choose(at, true);
    } else if (event.key === 'ContextMenu' || (event.key === 'F10' && event.shiftKey)) {
      event.preventDefault();
      const box = this.canvas.getBoundingClientRect();
      this.on.menu?.(at, box.left + 20, box.top + 20);
    }
  }

  // reveal scrolls to a node's row, and zooms to the node if it is outside the view.
  reveal(node) {
    const {x, weight} = this.at;
    const row = this.tree.depth[node];
    if (row >= this.rows || x[node] + weight[node] <= this.view.from || x[node] >= this.view.until) this.on.choose(node, true);
    const y = (this.upwards ? this.rows - 1 - row : row) * rowHeight + this.offset;
    if (y < this.element.scrollTop) this.element.scrollTop = y;
    if (y + rowHeight > this.element.scrollTop + this.height) this.element.scrollTop = y + rowHeight - this.height;
    this.draw();
  }
}
