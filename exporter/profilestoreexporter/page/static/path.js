// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// The line above the graph: the path to the zoomed frame, what is focused and hidden, and a legend.

import {button, el, menu, refill} from './dom.js';
import {clean} from './format.js';
import {changeColor, colorer, kindOf, kinds, shortName} from './colors.js';

const ends = 4;

export function renderPath(host, app) {
  const {model, state, theme} = app;
  const graph = state.view !== 'table' && state.view !== 'sandwich' && model && !model.isEmpty;
  const nodes = graph ? model.tree.path(model.zoomed) : [];
  host.hidden = !graph && !state.focus && !state.hide.length && !state.fold;
  refill(host, [graph && model.tree.key(model.zoomed), state.focus, state.hide, state.fold, graph && [theme.dark, state.color, state.palette, model.compared, model.frames.count]], () => [
    el('span', {class: 'crumbs'}, crumbs(app, nodes)), el('span', {class: 'space'}), ...chips(app), graph ? legend(app) : null,
  ]);
}

// crumbs returns a button for each frame of a path, with those in the middle of a long one in a menu. Frames are found again
// by their keys, since the tree may have changed by then.
function crumbs(app, nodes) {
  const {tree} = app.model ?? {};
  const zoom = (key) => app.update({zoom: key});
  const key = (node) => tree.key(node);
  const last = nodes.at(-1);
  const crumb = (node) => button(clean(shortName(tree.label(node)), 60), () => zoom(key(node)), {title: tree.label(node), 'aria-current': node === last ? 'location' : null});
  const middle = nodes.slice(1, -ends);
  const shown = [...nodes.slice(0, 1), ...nodes.slice(1).slice(-ends)].map(crumb);
  if (middle.length) {
    const more = button('…', () => menu(more, 'Path', middle.slice(-300).map((node) => [clean(tree.label(node), 100), () => zoom(key(node))])), {title: `${middle.length} frames between`});
    shown.splice(1, 0, more);
  }
  return shown.flatMap((item, i) => (i ? [el('span', {'aria-hidden': 'true'}, '▸'), item] : [item]));
}

function chips({state, update}) {
  const chip = (word, key, remove) => el('span', {class: 'chip', title: clean(key)}, el('small', {}, word), ` ${clean(shortName(key), 40)} `,
    button('×', remove, {'aria-label': `Undo ${word} ${clean(key, 60)}`}));
  return [
    state.focus ? chip('focus', state.focus, () => update({focus: ''})) : null,
    state.fold ? el('span', {class: 'chip'}, 'recursion collapsed ', button('×', () => update({fold: ''}), {'aria-label': 'Show recursive calls'})) : null,
    ...state.hide.map((key) => chip('hidden', key, () => update({hide: state.hide.filter((name) => name !== key)}))),
  ];
}

// legend lists the kinds of frames that are drawn differently, all of them if colours tell the kind, or the colours of a comparison.
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
      const kind = kindOf(frames, frame) || frames.kind[frame];
      if (kind && !found.has(kind) && !frames.isGroup(frame)) found.set(kind, frame);
    }
    return found;
  });
  const fill = colorer(frames, state.color, theme);
  const shown = [...new Set([...Object.keys(kinds), ...first.keys()])].filter((kind) => first.has(kind) && (kind in kinds || state.color === 'kind'));
  return el('span', {class: 'key'}, shown.map((kind) => entry(kinds[kind] ?? clean(kind, 40), kind === 'inlined' ? 'transparent' : fill(first.get(kind)), kind === 'inlined' || kind === 'unknown')));
}
