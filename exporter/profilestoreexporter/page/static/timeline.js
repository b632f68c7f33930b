// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// The time line: values over the window, with one band for each group. Dragging selects what is shown; with Shift, the base
// of a comparison.

import {button, el, fitCanvas, listenToDrags, ordered, refill} from './dom.js';
import {clean, formatDuration, formatRange, formatRate, formatTime, formatUTC, formatValue, formatZone, hueOf, tickLabels} from './format.js';

const height = 68;
const axis = 15;
const gutter = 72; // for the labels of the values

// bands returns the stacked upper edges of groups: bands[g][i], null where no group has a value.
export function bands(groups) {
  const length = Math.max(0, ...groups.map(({values}) => values.length));
  const below = new Array(length).fill(null);
  return groups.map(({values}) => values.map((value, i) => {
    if (value === null || value === undefined) return below[i];
    below[i] = (below[i] ?? 0) + Math.max(0, value);
    return below[i];
  }));
}

// ticks returns round times of the reader's clock within [from, until], about `count` of them.
export function ticks(from, until, count) {
  const steps = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400].map((s) => s * 1000);
  const step = steps.find((s) => (until - from) / s <= count) ?? 86400e3 * Math.ceil((until - from) / 86400e3 / count);
  const zone = (t) => new Date(t).getTimezoneOffset() * 60e3;
  const times = [];
  // Where summer time begins or ends, a day has 23 or 25 hours.
  for (let t = Math.ceil((from - zone(from)) / step) * step + zone(from); t <= until + 3600e3; t += step) times.push(step > 3600e3 ? t + zone(t) - zone(from) : t);
  return times.filter((t) => t >= from && t <= until);
}

export class Timeline {
  // on.select(from, until), on.base(from, until), on.all(), on.group(name), on.version(version)
  constructor(host, on) {
    Object.assign(this, {on, data: null, drag: null, hover: null});
    this.canvas = el('canvas', {tabindex: 0, role: 'application'});
    this.legend = el('div', {class: 'legend'});
    this.marks = el('div', {class: 'marks'});
    this.readout = el('output', {class: 'readout'});
    host.append(this.canvas, this.marks, this.readout, this.legend);
    new ResizeObserver(() => {
      if (!this.data) return;
      this.draw();
      this.placeMarks();
    }).observe(host);
    this.listen();
  }

  // show draws the answer of /api/timeline within an extent, and the two selections, each {from, until} or null.
  show(data) {
    if (this.drag) return; // it would move below the pointer
    this.data = data;
    const {extent, selection, base, answer} = data;
    this.canvas.setAttribute('aria-label', `Values from ${formatRange(extent.from, extent.until)}; shown is ${formatRange(selection.from, selection.until)}` +
      `${base ? `, compared with ${formatRange(base.from, base.until)}` : ''}. Drag to choose, drag with Shift to compare, arrow keys move what is chosen, with Shift its end; b makes it the base of a comparison.`);
    const groups = answer.groups.length > 1 || answer.groups[0]?.name ? answer.groups : [];
    refill(this.legend, [groups.slice(0, 40).map(({name}) => name), data.theme.dark], () => groups.slice(0, 40).map(({name}, i) => {
      const dot = el('i');
      dot.style.background = this.color(groups, i);
      // These are not values of the attribute: the API adds up samples without it, and those of further values.
      if (name === '(none)') return el('span', {class: 'chip'}, dot, name);
      if (name === '(other)') return el('span', {class: 'chip'}, dot, `(other: ${answer.more_groups} smaller values)`);
      return el('button', {type: 'button', class: 'chip', title: 'Show only this', onclick: () => this.on.group(name)}, dot, clean(name, 60) || '(empty)');
    }));
    this.draw();
    this.placeMarks();
  }

  // placeMarks puts a button at the first appearance of each version. Of those that would cover each other, only the last has a name.
  placeMarks() {
    const {marks, extent} = this.data;
    const share = ({from}) => (from - extent.from) / (extent.until - extent.from);
    const width = this.canvas.parentElement.clientWidth;
    refill(this.marks, [marks, extent, width], () => marks.slice(-50).map((version, i, list) => {
      const next = list[i + 1];
      const isShort = next && (share(next) - share(version)) * (width - gutter) < 90;
      const name = clean(version.value, 24) || '(empty)';
      const mark = button(isShort ? '' : `⚑ ${name}`, () => this.on.version(version), {
        class: 'mark', title: `${name} appeared at ${formatTime(version.from)}: compare with before this version`, 'aria-label': `${name} appeared: compare with before this version`,
      });
      mark.style.left = `calc(${gutter}px + (100% - ${gutter}px) * ${share(version).toFixed(5)})`;
      return mark;
    }));
  }

  color(groups, i) {
    const {theme} = this.data;
    if (groups.length === 1 && !groups[0].name) return theme.area;
    return `oklch(${theme.dark ? 0.52 : 0.74} 0.09 ${hueOf(groups[i].name)})`;
  }

  draw() {
    if (!this.data) return;
    const {extent, selection, base, answer, theme} = this.data;
    const width = this.canvas.parentElement.clientWidth;
    const pen = fitCanvas(this.canvas, width, height);
    const plot = height - axis;
    this.scale = Math.max(1, width - gutter) / (extent.until - extent.from);
    const x = (ms) => gutter + (ms - extent.from) * this.scale;
    pen.font = '10.5px system-ui, sans-serif';
    pen.textBaseline = 'alphabetic';
    const label = tickLabels();
    for (const t of ticks(extent.from, extent.until, Math.max(2, width / 110))) {
      pen.fillStyle = theme.line;
      pen.fillRect(Math.round(x(t)), 0, 1, plot);
      pen.fillStyle = theme.faint;
      if (x(t) + 4 < width - 48) pen.fillText(label(t), x(t) + 4, height - 3);
    }
    const edges = bands(answer.groups);
    const top = Math.max(1e-9, ...edges.at(-1)?.filter((v) => v !== null) ?? [1]);
    const bar = Math.max(1, answer.step_ms * this.scale);
    for (let g = edges.length - 1; g >= 0; g--) {
      pen.fillStyle = this.color(answer.groups, g);
      edges[g].forEach((value, i) => {
        if (value === null) return;
        const size = Math.max(1, value / top * (plot - 6));
        pen.fillRect(x(answer.from + i * answer.step_ms), plot - size, bar > 3 ? bar - 0.5 : bar, size);
      });
    }
    pen.fillStyle = theme.line;
    pen.fillRect(0, plot, width, 1);
    this.drawAxis(pen, top, plot);
    // Fade what is not selected, and draw the edges of the selected ranges in their colours.
    const chosen = this.drag ? {...{selection, base}, [this.drag.base ? 'base' : 'selection']: ordered(this.drag)} : {selection, base};
    pen.fillStyle = theme.background;
    pen.globalAlpha = 0.62;
    const ranges = [chosen.selection, chosen.base].filter(Boolean).sort((a, b) => a.from - b.from);
    let at = gutter;
    for (const range of ranges) {
      if (x(range.from) > at) pen.fillRect(at, 0, x(range.from) - at, plot);
      at = Math.max(at, x(range.until));
    }
    pen.fillRect(at, 0, width - at, plot);
    pen.globalAlpha = 1;
    for (const [range, color, name] of [[chosen.base, theme.base, 'base'], [chosen.selection, theme.accent, chosen.base ? 'shown' : '']]) {
      if (!range) continue;
      pen.fillStyle = color;
      const [left, right] = [Math.max(gutter, x(range.from)), Math.min(width, x(range.until))];
      pen.globalAlpha = 0.1;
      pen.fillRect(left, 0, right - left, plot);
      pen.globalAlpha = 1;
      pen.fillRect(left, 0, 1.5, plot);
      pen.fillRect(right - 1.5, 0, 1.5, plot);
      pen.fillRect(left, plot - 1, right - left, 2);
      if (name && right - left > 36) pen.fillText(name, left + 5, 11);
    }
    if (this.hover !== null && !this.drag) {
      pen.fillStyle = theme.faint;
      pen.fillRect(x(this.hover), 0, 1, plot);
    }
  }

  // drawAxis writes what the upper edge means, and half of it.
  drawAxis(pen, top, plot) {
    const {answer, theme} = this.data;
    if (!answer.groups.some(({values}) => values.some((value) => value > 0))) return;
    pen.fillStyle = theme.faint;
    pen.textAlign = 'right';
    for (const part of [1, 0.5]) {
      const y = plot - part * (plot - 6);
      pen.fillText(this.valueText(top * part, top), gutter - 6, y + (part === 1 ? 6 : 4), gutter - 8); // a long one is condensed
      pen.globalAlpha = 0.6;
      pen.fillRect(gutter - 4, y, 4, 1);
      pen.globalAlpha = 1;
    }
    pen.textAlign = 'left';
  }

  // valueText returns the value of a step: by time, unless it is a state.
  valueText(value, like = value) {
    const {answer, isCPU} = this.data;
    if (answer.kind !== 'delta') return formatValue(value, answer.unit, like);
    const seconds = answer.step_ms / 1000;
    return formatRate(value / seconds, answer.unit, isCPU, like / seconds);
  }

  timeAt(event) {
    const box = this.canvas.getBoundingClientRect();
    const {extent} = this.data;
    return Math.min(extent.until, Math.max(extent.from, extent.from + (event.clientX - box.left - gutter) / this.scale));
  }

  // describe writes what the pointer is over, or the range that is being dragged.
  describe() {
    const {answer} = this.data;
    if (this.drag?.moved) {
      const {from, until} = ordered(this.drag);
      this.readout.textContent = `${this.drag.base ? 'base ' : ''}${formatRange(from, until)} · ${formatDuration(until - from)}`;
    } else if (this.hover === null) {
      this.readout.textContent = '';
    } else {
      const i = Math.floor((this.hover - answer.from) / answer.step_ms);
      const values = answer.groups.map(({values: column}) => column[i]).filter((v) => v !== null && v !== undefined);
      const sum = values.reduce((a, b) => a + b, 0);
      const inStep = answer.kind === 'delta' ? ` · ${formatValue(sum, answer.unit)} in ${formatDuration(answer.step_ms)}` : '';
      const elsewhere = formatZone(this.hover) === 'UTC' ? '' : ` (${formatUTC(this.hover).slice(-12)})`;
      this.readout.textContent = `${formatTime(this.hover)}${elsewhere} · ${values.length ? this.valueText(sum) + inStep : 'no data'}`;
    }
  }

  listen() {
    const {canvas} = this;
    listenToDrags(this, {
      at: (event) => (this.data ? this.timeAt(event) : undefined),
      move: (event) => {
        this.hover = this.timeAt(event);
        this.describe();
        if (!this.drag) this.draw();
      },
      end: (drag) => {
        const {from, until} = ordered(drag);
        if (drag.moved) (drag.base ? this.on.base : this.on.select)(from, until);
      },
    });
    canvas.addEventListener('pointerleave', () => {
      this.hover = null;
      if (!this.data) return;
      this.describe();
      this.draw();
    });
    canvas.addEventListener('dblclick', () => this.on.all());
    canvas.addEventListener('keydown', (event) => {
      const step = {ArrowLeft: -1, ArrowRight: 1, b: 0}[event.key];
      if (step === undefined || !this.data) return;
      event.preventDefault();
      const {selection, extent, answer} = this.data;
      if (!step) {
        this.on.base(selection.from, selection.until);
        return;
      }
      const by = step * Math.max(answer.step_ms, (selection.until - selection.from) / 10);
      // With Shift only the end moves.
      const from = event.shiftKey ? selection.from : Math.max(extent.from, selection.from + by);
      const until = Math.min(extent.until, selection.until + by);
      if (until > from) this.on.select(from, until);
    });
  }
}
