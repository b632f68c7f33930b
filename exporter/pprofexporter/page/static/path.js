// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// The line above the graph: the path to the zoomed frame, what is focused and hidden, and a legend.

import {button, el, menu} from './dom.js';
import {clean} from './format.js';
import {changeColor, colorer, kindOf, kinds, shortName} from './colors.js';

const ends = 4;

export function renderPath(host, app) {
  const {model, state} = app;
  const graph = state.view !== 'table' && state.view !== 'sandwich' && model && !model.isEmpty;
  const nodes = graph ? model.tree.path(model.zoomed) : [];
  const crumb = (node) => button(clean(shortName(model.tree.label(node)), 60), () => app.zoomTo(node), {title: model.tree.label(node), 'aria-current': node === model.zoomed ? 'location' : null});
  const middle = nodes.slice(1, -ends);
  const crumbs = [];
  if (nodes.length) {
    crumbs.push(crumb(0));
    if (middle.length) {
      const more = button('…', () => menu(more, 'Path', middle.slice(-300).map((node) => [clean(model.tree.label(node), 100), () => app.zoomTo(node)])), {title: `${middle.length} frames between`});
      crumbs.push(more);
    }
    for (const node of nodes.slice(Math.max(1, nodes.length - ends))) crumbs.push(crumb(node));
  }
  const chip = (word, key, remove) => el('span', {class: 'chip', title: clean(key)}, el('small', {}, word), ` ${clean(shortName(key), 40)} `,
    button('×', remove, {'aria-label': `No longer ${word} ${clean(key, 60)}`}));
  const chips = [];
  if (state.focus) chips.push(chip('focus', state.focus, () => app.update({focus: ''})));
  for (const key of state.hide) chips.push(chip('hidden', key, () => app.update({hide: state.hide.filter((name) => name !== key)})));
  host.hidden = !graph && !chips.length;
  host.replaceChildren(el('span', {class: 'crumbs'}, crumbs.flatMap((c, i) => (i ? [el('span', {'aria-hidden': 'true'}, '▸'), c] : [c]))), el('span', {class: 'space'}), ...chips, graph ? legend(app) : '');
}

// legend names the kinds of frames that are drawn in a way of their own, or the colours of a comparison.
function legend({model, state, theme}) {
  const {frames, compared} = model;
  const entry = (word, color, hatched) => {
    const swatch = el('i', {class: hatched ? 'hatched' : null});
    swatch.style.backgroundColor = color;
    return el('span', {}, swatch, word);
  };
  if (compared) {
    return el('span', {class: 'key'}, entry('− less', changeColor(-0.7, state.palette, theme)), entry('same', changeColor(0, state.palette, theme)), entry('+ more', changeColor(0.7, state.palette, theme)));
  }
  const first = model.once('kinds', 0, () => {
    const found = new Map();
    for (let frame = 0; frame < frames.count; frame++) {
      const kind = kindOf(frames, frame);
      if (kind && !found.has(kind)) found.set(kind, frame);
    }
    return found;
  });
  const fill = colorer(frames, state.color, theme);
  return el('span', {class: 'key'}, Object.entries(kinds).filter(([kind]) => first.has(kind)).map(([kind, word]) => entry(word, kind === 'inlined' ? 'transparent' : fill(first.get(kind)), kind === 'inlined' || kind === 'unknown')));
}
