// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// The heat map: a column for each second, a row for each part of a second, so that events within seconds (stalls, timers)
// form patterns. The selected part is shown as a flame graph.

import {el, fitCanvas, listenToDrags} from './dom.js';
import {formatTime, formatValue, tickLabels} from './format.js';
import {ticks} from './timeline.js';

const left = 44;
const bottom = 16;
const rowHeight = 4;

// cellTime returns the start of the cell at a column and row, in Unix milliseconds, and its length. If a column adds up
// several seconds, each cell has the time of the whole column.
export function cellTime({from, seconds, rows}, column, row) {
  if (seconds > 1) return {from: from + column * seconds * 1000, length: seconds * 1000};
  return {from: from + column * 1000 + row * 1000 / rows, length: 1000 / rows};
}

// rangeOf returns the time from one cell to another, in either order.
export function rangeOf(answer, a, b) {
  const [first, last] = [cellTime(answer, a.column, a.row), cellTime(answer, b.column, b.row)].sort((x, y) => x.from - y.from);
  return {from: first.from, until: last.from + last.length};
}

export class HeatMap {
  // on.select({from, until} or null)
  constructor(on) {
    Object.assign(this, {on, data: null, drag: null, cursor: null}); // cursor has two cells, as drag has
    this.canvas = el('canvas', {tabindex: 0, role: 'application'});
    this.readout = el('output', {class: 'readout'});
    this.swatch = el('i');
    this.legend = el('p', {class: 'heatkey'});
    this.element = el('div', {class: 'heatmap'}, this.canvas, this.readout, this.legend);
    new ResizeObserver(() => this.draw()).observe(this.element);
    this.listen();
  }

  // show draws the answer of /api/heatmap and the selected part, {from, until} or null.
  show(data) {
    if (this.drag) return; // it would move below the pointer
    if (data.answer !== this.data?.answer) {
      const values = data.answer.cells.filter((value) => value > 0);
      this.most = values.reduce((a, b) => Math.max(a, b), 0);
      this.least = values.reduce((a, b) => Math.min(a, b), this.most);
    }
    const {answer, theme} = data;
    const cellsOf = ({from, seconds, rows} = {}) => [from, seconds, rows].join();
    if (cellsOf(answer) !== cellsOf(this.data?.answer)) this.cursor = null;
    this.data = data;
    this.canvas.setAttribute('aria-label', `Heat map of ${answer.columns} columns of ${answer.seconds} s, ${answer.rows} rows for the parts of a second. ` +
      'Drag to choose what the flame graph shows; arrow keys move, with Shift over a range, Enter chooses, Escape chooses all.');
    this.showLegend(answer, theme);
    this.draw();
  }

  // showLegend says what the colours mean: the smallest and the largest value of a cell.
  showLegend(answer, theme) {
    this.legend.hidden = !this.most;
    if (!this.most) return;
    const stops = [0, 0.25, 0.5, 0.75, 1].map((part) => this.color(this.least + part * (this.most - this.least), theme));
    this.swatch.style.background = `linear-gradient(to right, ${stops.join(', ')})`;
    const cell = answer.seconds > 1 ? `in ${answer.seconds} s` : `in ${formatValue(1e9 / answer.rows, 'nanoseconds')}`;
    this.legend.replaceChildren(formatValue(this.least, answer.unit), this.swatch, `${formatValue(this.most, answer.unit)} ${cell}`);
  }

  get scale() {
    return Math.min(24, (this.element.clientWidth - left) / Math.max(1, this.data.answer.columns));
  }

  draw() {
    if (!this.data) return;
    const {answer, part, theme} = this.data;
    const width = this.element.clientWidth;
    const plot = answer.rows * rowHeight;
    const pen = fitCanvas(this.canvas, width, plot + bottom);
    pen.font = '10.5px system-ui, sans-serif';
    pen.fillStyle = theme.faint;
    for (const ms of [0, 250, 500, 750]) pen.fillText(`${ms} ms`, 2, ms / 1000 * plot + 9);
    const {scale} = this;
    const span = answer.seconds * 1000;
    const time = tickLabels();
    for (const t of ticks(answer.from, answer.from + answer.columns * span, Math.max(2, answer.columns * scale / 90))) {
      pen.fillText(time(t), left + (t - answer.from) / span * scale, plot + bottom - 4);
    }
    pen.fillStyle = theme.line;
    pen.fillRect(left, plot, answer.columns * scale, 1);
    for (let i = 0; i < answer.cells.length; i++) {
      const value = answer.cells[i];
      if (!(value > 0)) continue;
      pen.fillStyle = this.color(value, theme);
      pen.fillRect(left + Math.floor(i / answer.rows) * scale, (i % answer.rows) * rowHeight, scale > 3 ? scale - 0.5 : scale, rowHeight);
    }
    const range = this.chosen() ?? part;
    if (range) this.outline(pen, range);
    if (this.cursor) {
      const {column, row} = this.cursor.until;
      pen.strokeStyle = theme.outline;
      pen.strokeRect(left + column * scale, row * rowHeight, Math.max(scale, 3), rowHeight);
    }
  }

  // chosen returns the time that is being chosen by dragging, or by keys with Shift; null if none is.
  chosen() {
    const {from, until} = this.drag ?? this.cursor ?? {};
    return this.drag || from !== until ? rangeOf(this.data.answer, from, until) : null;
  }

  color(value, theme) {
    // The value that all cells have in common carries no information.
    const share = this.most > this.least ? ((value - this.least) / (this.most - this.least)) ** 0.6 : 1;
    const [low, high] = theme.dark ? [0.32, 0.86] : [0.9, 0.42];
    return `oklch(${(low + (high - low) * share).toFixed(3)} ${(0.04 + 0.12 * share).toFixed(3)} ${(95 - 65 * share).toFixed(0)})`;
  }

  // outline frames a time: a part of the first column, whole columns, a part of the last.
  outline(pen, {from, until}) {
    const {answer, theme} = this.data;
    const {scale} = this;
    const plot = answer.rows * rowHeight;
    const span = answer.seconds * 1000;
    pen.fillStyle = theme.accent;
    for (let column = Math.max(0, Math.floor((from - answer.from) / span)); column < answer.columns; column++) {
      const start = answer.from + column * span;
      if (start >= until) break;
      const top = answer.seconds > 1 ? 0 : Math.max(0, (from - start) / 1000) * plot;
      const end = answer.seconds > 1 ? plot : Math.min(1, (until - start) / 1000) * plot;
      pen.globalAlpha = 0.22;
      pen.fillRect(left + column * scale, top, scale, end - top);
      pen.globalAlpha = 1;
      pen.fillRect(left + column * scale, top, scale, 1);
      pen.fillRect(left + column * scale, end - 1, scale, 1);
      pen.fillRect(left + column * scale, top, 1, end - top);
      pen.fillRect(left + (column + 1) * scale - 1, top, 1, end - top);
    }
  }

  cellAt(event) {
    const {answer} = this.data;
    const box = this.canvas.getBoundingClientRect();
    const within = (value, count) => Math.min(count - 1, Math.max(0, Math.floor(value)));
    return {column: within((event.clientX - box.left - left) / this.scale, answer.columns), row: within((event.clientY - box.top) / rowHeight, answer.rows)};
  }

  describe(cell) {
    const {answer} = this.data;
    if (!cell || !answer.columns) {
      this.readout.textContent = '';
      return;
    }
    const range = this.chosen();
    const {from} = cellTime(answer, cell.column, cell.row);
    const within = Math.round(cell.row * 1000 / answer.rows);
    const value = answer.cells[cell.column * answer.rows + cell.row];
    this.readout.textContent = range ? `${formatTime(range.from)} + ${Math.round(range.from % 1000)} ms · ${formatValue((range.until - range.from) * 1e6, 'nanoseconds')}`
      : `${formatTime(from)} + ${within} ms · ${formatValue(value, answer.unit)}`;
  }

  listen() {
    const {canvas} = this;
    listenToDrags(this, {
      at: (event) => (this.data?.answer.columns ? this.cellAt(event) : undefined),
      move: (event) => this.describe(this.cellAt(event)),
      end: (drag) => {
        this.cursor = null;
        this.on.select(rangeOf(this.data.answer, drag.from, drag.until));
      },
    });
    canvas.addEventListener('pointerleave', () => this.data && this.describe(null));
    canvas.addEventListener('dblclick', () => this.on.select(null));
    canvas.addEventListener('keydown', (event) => {
      const {answer} = this.data ?? {};
      if (!answer?.columns) return;
      const step = {ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1]}[event.key];
      if (event.key === 'Escape' && this.data.part) this.on.select(null);
      else if (event.key === 'Enter' && this.cursor) {
        const {from, until} = this.cursor;
        this.cursor = {from: until, until};
        this.on.select(rangeOf(answer, from, until));
      } else if (step) {
        const {column, row} = this.cursor?.until ?? {column: 0, row: 0};
        const cell = {column: Math.min(answer.columns - 1, Math.max(0, column + step[0])), row: Math.min(answer.rows - 1, Math.max(0, row + step[1]))};
        this.cursor = {from: event.shiftKey && this.cursor ? this.cursor.from : cell, until: cell};
        this.describe(cell);
        this.draw();
      } else return;
      event.preventDefault();
      event.stopPropagation();
    });
  }
}
