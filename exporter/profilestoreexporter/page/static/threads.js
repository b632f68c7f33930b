// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// The threads: one lane for each thread or goroutine, with a bar in the colour of its state for each event, from minutes down
// to microseconds. A click or the arrow keys choose an event, whose stack is shown.

import {button, el, fitCanvas, listenToDrags, ordered, refill} from './dom.js';
import {clean, formatTime, formatValue, hash32, tickLabels} from './format.js';
import {ticks} from './timeline.js';

const maxLabel = 190;
const laneHeight = 18;
const axis = 18;

// hues are those of well-known states; other states have a hue derived from their name.
const hues = {
  __proto__: null, running: 145, sample: 195, runnable: 75, syscall: 310, 'off CPU': 250, 'GC pause': 110, sync: 20, sleep: 250, network: 220, select: 275, GPU: 150, CPU: 285,
};

export function stateColor(state, dark) {
  const hue = hues[state] ?? hash32(state) % 360;
  const quiet = state === 'sleep' || state === 'select';
  return `oklch(${dark ? 0.6 : 0.7} ${quiet ? 0.03 : 0.12} ${hue})`;
}

// fineTicks returns round times within [from, until], in milliseconds, about count of them, and the step between them, a second if it is
// longer.
export function fineTicks(from, until, count) {
  const rough = (until - from) / Math.max(1, count);
  if (rough >= 1000) return {times: ticks(from, until, count), step: 1000};
  const power = 10 ** Math.floor(Math.log10(Math.max(rough, 1e-6)));
  const step = [1, 2, 5, 10].map((n) => n * power).find((candidate) => candidate >= rough) ?? 10 * power;
  const times = [];
  for (let i = Math.ceil((from % 1000) / step); times.length < 200; i++) {
    const t = from - (from % 1000) + i * step;
    if (t > until) break;
    times.push(t);
  }
  return {times, step};
}

// extentOf returns the time in which there are events, within a time that is shown, both in Unix milliseconds.
export function extentOf({base, start, length}, shown) {
  let [from, until] = [Infinity, -Infinity];
  for (let i = 0; i < start.length; i++) {
    from = Math.min(from, base + start[i] / 1e6);
    until = Math.max(until, base + (start[i] + length[i]) / 1e6);
  }
  [from, until] = [Math.max(from, shown.from), Math.min(until, shown.until)];
  return until - from >= 0.01 ? {from, until} : {from: shown.from, until: shown.until};
}

export class Threads {
  // on.range({from, until} or null), in Unix milliseconds
  constructor(on) {
    // chosen is an event, place its lane and time, which stay when new events come in.
    Object.assign(this, {on, data: null, drag: null, chosen: -1, place: null});
    // It scrolls, and has no control of its own that could have the focus.
    this.legend = el('div', {class: 'legend', role: 'region', tabindex: 0, 'aria-label': 'States'});
    this.out = button('zoom out', () => this.zoom(4), {title: 'Show four times as much (double click)'});
    this.readout = el('output', {class: 'readout'});
    this.canvas = el('canvas', {tabindex: 0, role: 'application'});
    this.scroller = el('div', {class: 'lanes'}, this.canvas);
    this.stack = el('aside', {class: 'stackpanel', hidden: true, 'aria-label': 'Stack of the chosen event'});
    this.element = el('div', {class: 'threads'}, el('div', {class: 'head'}, this.out, this.legend, this.readout),
      el('div', {class: 'body'}, this.scroller, this.stack));
    new ResizeObserver(() => this.draw()).observe(this.scroller);
    this.listen();
  }

  // show draws the answer of /api/events of a service within a time in Unix milliseconds.
  show(data) {
    if (this.drag) return; // it would move below the pointer
    // The stack of an event stays readable while new ones come in.
    if (data.service !== this.data?.service) this.close();
    else if (data.answer !== this.data.answer) this.chosen = -1;
    this.data = data;
    const {answer, from, until, theme} = data;
    this.canvas.setAttribute('aria-label', `${answer.lanes.length} threads from ${formatTime(from)} on, ${answer.start.length} events. ` +
      'Drag to zoom in, double click to zoom out; a click shows the stack. Left and right move, plus and minus zoom; up and down go to ' +
      'an event of the next thread and show its stack, Shift with left and right to the next event of the thread, Escape closes the stack.');
    this.out.disabled = !data.zoomed;
    refill(this.legend, [answer.states, theme.dark], () => answer.states.slice(0, 24).map((state) => {
      const dot = el('i');
      dot.style.background = stateColor(state, theme.dark);
      return el('span', {class: 'chip'}, dot, clean(state, 40));
    }));
    this.draw();
  }

  // label is the width of the names of the threads.
  get label() {
    return Math.min(maxLabel, this.scroller.clientWidth * 0.3);
  }

  get scale() {
    return Math.max(1, this.scroller.clientWidth - this.label) / (this.data.until - this.data.from);
  }

  draw() {
    if (!this.data) return;
    const {answer, from, until, theme} = this.data;
    const width = this.scroller.clientWidth;
    const height = axis + Math.max(1, answer.lanes.length) * laneHeight;
    const pen = fitCanvas(this.canvas, width, height);
    pen.font = '11px system-ui, sans-serif';
    pen.textBaseline = 'middle';
    const {label, scale} = this;
    const x = (ms) => label + (ms - from) * scale;
    drawTicks(pen, fineTicks(from, until, Math.max(2, (width - label) / 110)), x, height, theme);
    for (let i = 0; i < answer.start.length; i++) {
      const start = Math.max(label, x(answer.base + answer.start[i] / 1e6));
      const end = x(answer.base + (answer.start[i] + answer.length[i]) / 1e6);
      if (end < label || start > width) continue;
      pen.fillStyle = stateColor(answer.states[answer.state[i]], theme.dark);
      const tick = answer.length[i] === 0;
      pen.fillRect(start, axis + answer.lane[i] * laneHeight + (tick ? 1 : 3), tick ? 1.5 : Math.max(1, end - start), laneHeight - (tick ? 2 : 6));
      if (i === this.chosen) {
        pen.strokeStyle = theme.outline;
        pen.strokeRect(start, axis + answer.lane[i] * laneHeight + 2, Math.max(2, end - start), laneHeight - 4);
      }
    }
    pen.fillStyle = theme.background;
    pen.fillRect(0, 0, label - 4, height);
    pen.fillStyle = theme.text;
    answer.lanes.forEach((name, i) => pen.fillText(fitted(pen, clean(name, 80), label - 12), 8, axis + (i + 0.5) * laneHeight));
    if (this.drag?.moved) {
      const {from: a, until: b} = ordered(this.drag);
      pen.fillStyle = theme.accent;
      pen.globalAlpha = 0.18;
      pen.fillRect(x(a), 0, x(b) - x(a), height);
      pen.globalAlpha = 1;
    }
  }

  timeAt(event) {
    const box = this.canvas.getBoundingClientRect();
    return Math.min(this.data.until, this.data.from + Math.max(0, event.clientX - box.left - this.label) / this.scale);
  }

  // eventAt returns the event at a point, the shortest where several are, or -1.
  eventAt(event) {
    const {answer} = this.data;
    const box = this.canvas.getBoundingClientRect();
    const lane = Math.floor((event.clientY - box.top - axis) / laneHeight);
    if (event.clientX - box.left < this.label) return -1;
    const at = (this.timeAt(event) - answer.base) * 1e6;
    const slack = 2e6 / this.scale;
    let best = -1;
    for (let i = 0; i < answer.start.length; i++) {
      if (answer.lane[i] !== lane || answer.start[i] - slack > at || answer.start[i] + answer.length[i] + slack < at) continue;
      if (best < 0 || answer.length[i] < answer.length[best]) best = i;
    }
    return best;
  }

  describe(i) {
    this.readout.textContent = i < 0 ? '' : this.text(i);
  }

  text(i) {
    const {answer} = this.data;
    const at = this.startOf(i);
    return `${clean(answer.lanes[answer.lane[i]], 60)} · ${clean(answer.states[answer.state[i]], 40)}` +
      `${answer.length[i] ? ` · ${formatValue(answer.length[i], 'nanoseconds')}` : ''} · ${formatTime(at)} + ${(at % 1000).toFixed(3)} ms`;
  }

  startOf(i) {
    return this.data.answer.base + this.data.answer.start[i] / 1e6;
  }

  choose(i) {
    if (i < 0) {
      this.close();
      return;
    }
    const {answer} = this.data;
    this.chosen = i;
    this.place = {lane: answer.lane[i], at: this.startOf(i)};
    this.stack.hidden = false;
    this.stack.replaceChildren(el('p', {}, el('b', {}, this.text(i)), button('×', () => this.close(), {'aria-label': 'Close the stack', title: 'Escape'})),
      el('ol', {}, answer.stacks[answer.stack[i]].map((frame) => el('li', {title: clean(`${answer.frames.file[frame]}:${answer.frames.line[frame]}`, 300)},
        clean(answer.frames.name[frame], 300) || '(no name)'))));
    this.draw();
  }

  close() {
    if (this.stack.contains(document.activeElement)) this.canvas.focus({preventScroll: true});
    Object.assign(this, {chosen: -1, place: null});
    this.stack.hidden = true;
    this.draw();
  }

  // step chooses the nearest event that is shown in the next lane that has one (down is 1 or -1), or the next one of the same lane
  // (down is 0, right is 1 or -1).
  step(down, right) {
    const {answer, from, until} = this.data;
    const {lane, at} = this.place ?? {lane: down < 0 ? answer.lanes.length : -1, at: from};
    let [best, nearest] = [-1, Infinity];
    for (let i = 0; i < answer.start.length; i++) {
      const [lanes, time] = [answer.lane[i] - lane, this.startOf(i) - at];
      if (this.startOf(i) > until || this.startOf(i) + answer.length[i] / 1e6 < from) continue;
      if (down ? lanes * down <= 0 : lanes || time * right <= 0) continue;
      const distance = Math.abs(lanes) * 1e12 + Math.abs(time); // a lane is farther than any time
      if (distance < nearest) [best, nearest] = [i, distance];
    }
    if (best < 0) return;
    this.choose(best);
    this.describe(best);
    const top = axis + answer.lane[best] * laneHeight;
    const {scrollTop, clientHeight} = this.scroller;
    if (top < scrollTop + axis || top + laneHeight > scrollTop + clientHeight) this.scroller.scrollTop = top - clientHeight / 2;
  }

  // zoom shows factor times as much time, around a moment or else the middle.
  zoom(factor, around = (this.data.from + this.data.until) / 2) {
    const {from, until, whole} = this.data;
    const least = 0.01;
    const range = {from: Math.max(whole.from, around - (around - from) * factor), until: Math.min(whole.until, around + (until - around) * factor)};
    if (range.until - range.from < least) return;
    this.on.range(range.from <= whole.from && range.until >= whole.until ? null : range);
  }

  move(share) {
    const {from, until, whole} = this.data;
    const by = Math.min(whole.until - until, Math.max(whole.from - from, (until - from) * share));
    if (by) this.on.range({from: from + by, until: until + by});
  }

  listen() {
    const {canvas} = this;
    listenToDrags(this, {
      at: (event) => (this.data ? this.timeAt(event) : undefined),
      move: (event) => {
        if (!this.drag) this.describe(this.eventAt(event));
      },
      end: (drag, event) => {
        const {from, until} = ordered(drag);
        if (!drag.moved) this.choose(this.eventAt(event));
        else if (until - from >= 0.01) this.on.range({from, until});
      },
    });
    canvas.addEventListener('dblclick', (event) => this.zoom(4, this.timeAt(event)));
    this.scroller.addEventListener('wheel', (event) => {
      if (!event.ctrlKey || !this.data) return;
      event.preventDefault();
      this.zoom(event.deltaY > 0 ? 1.5 : 1 / 1.5, this.timeAt(event));
    }, {passive: false});
    canvas.addEventListener('keydown', (event) => {
      const right = {ArrowLeft: -1, ArrowRight: 1}[event.key];
      const down = {ArrowUp: -1, ArrowDown: 1}[event.key];
      const action = right ? () => (event.shiftKey ? this.step(0, right) : this.move(right / 4)) : down ? () => this.step(down, 0)
        : {'+': () => this.zoom(0.5), '-': () => this.zoom(2), Escape: this.stack.hidden ? null : () => this.close()}[event.key];
      if (!action || !this.data) return;
      event.preventDefault();
      event.stopPropagation();
      action();
    });
  }
}

// drawTicks draws a line for each tick, and its time where that does not cover the one before.
export function drawTicks(pen, {times, step}, x, height, theme) {
  const label = tickLabels(Date.now(), step);
  let end = -Infinity;
  for (const t of times) {
    const left = x(t) + 3;
    pen.fillStyle = theme.line;
    pen.fillRect(Math.round(x(t)), 0, 1, height);
    if (left < end) continue;
    pen.fillStyle = theme.faint;
    const text = label(t);
    pen.fillText(text, left, axis / 2);
    end = left + pen.measureText(text).width + 6;
  }
}

function fitted(pen, text, width) {
  if (pen.measureText(text).width <= width) return text;
  let end = text.length;
  while (end > 1 && pen.measureText(`${text.slice(0, end)}…`).width > width) end--;
  return `${text.slice(0, end)}…`;
}
