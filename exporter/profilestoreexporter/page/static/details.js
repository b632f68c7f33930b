// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// The details of a frame: the tooltip, and the panel with the actions.

import {button, copyText, el, refill} from './dom.js';
import {baseName, kindOf, packageOf} from './colors.js';
import {clean, formatChange, formatCount, formatExact, formatPercent, formatShare, formatValue} from './format.js';

// values returns the numbers of a node as [label, text]. Shares are of the tree and, if zoomed, of the zoomed frame. A tree of
// callers has no values of their own.
export function values(tree, node, {unit, scale, zoomed = 0, ofCallers = false}) {
  const rows = [];
  const whole = tree.total[0];
  const show = (value, of) => `${formatValue(value, unit)} · ${formatShare(value, of)}`;
  if (!tree.baseTotal) {
    if (!ofCallers) rows.push(['self', show(tree.self[node], whole)]);
    rows.push(['total', show(tree.total[node], whole)]);
    if (zoomed > 0 && node > zoomed) rows.push(['of zoomed', formatShare(tree.total[node], tree.total[zoomed])]);
    return rows;
  }
  const baseWhole = tree.baseTotal[0];
  const own = ofCallers ? [] : [['self', tree.self[node], tree.baseSelf[node]]];
  for (const [label, now, base] of [...own, ['total', tree.total[node], tree.baseTotal[node]]]) {
    const [before, after] = scale.pair(base, now);
    rows.push([label, `${before} · ${formatShare(base, baseWhole)} → ${after} · ${formatShare(now, whole)}`]);
    rows.push([`${label} ±`, `${scale.change(base, now)} · ${formatChange(now, base * scale.factor)}`]);
    if (scale.byShare) {
      const points = 100 * (now / (whole || 1) - base / (baseWhole || 1));
      rows.push([`${label} share ±`, `${formatPercent(points, '+').replace(' %', '')} points · ${formatChange(now / (whole || 1), base / (baseWhole || 1))}`]);
    }
  }
  return rows;
}

// place returns where a frame is from, as [label, text], without unknown fields.
export function place(frames, frame) {
  if (frame < 0) return [];
  const [name, file, line, mapping] = [frames.name[frame], frames.file[frame], frames.line[frame], frames.mapping[frame]];
  return [
    ['kind', kindOf(frames, frame) || frames.kind[frame]],
    ['package', packageOf(name, file ?? '', mapping ?? '')],
    ['source', file ? `${file}${line ? `:${line}` : ''}` : ''],
    ['mapping', mapping],
    ['build id', frames.buildID[frame]],
  ].filter(([, text]) => text).map(([label, text]) => [label, clean(text, 300)]);
}

// sourceAnchor is a link to source code, which another site has: it gets no referrer.
export function sourceAnchor(href, text) {
  return el('a', {href, target: '_blank', rel: 'noopener noreferrer'}, text);
}

// linesSheet lists the lines of a function, an answer of /api/lines; linkOf(file, line) returns the address of one, or ''.
export function linesSheet(answer, {name, unit, total, linkOf, isKnown}) {
  const files = new Set(answer.lines.map(({file}) => file));
  const known = answer.lines.filter(({line}) => line > 0);
  const row = ({file, line, self, total: through}) => {
    const text = `${files.size > 1 ? clean(file, 200) : clean(baseName(file), 80)}:${line || '?'}`;
    const href = linkOf(file, line);
    return el('tr', {}, el('td', {title: clean(file, 400)}, href ? sourceAnchor(href, text) : text), [self, through].map((value) =>
      el('td', {class: 'number'}, formatValue(value, unit), ' ', el('small', {}, formatShare(value, total)))));
  };
  return el('div', {class: 'sheet wide lines'}, el('h2', {}, clean(name, 200)),
    known.length ? el('table', {}, el('thead', {}, el('tr', {}, ['line', 'self', 'total'].map((label, i) => el('th', {scope: 'col', class: i ? 'number' : null}, label)))), el('tbody', {}, answer.lines.map(row)))
      : el('p', {}, 'The profiles have no line numbers of this function.'),
    answer.more ? el('p', {class: 'faint'}, `${formatCount(answer.more, 'other line')}`) : null,
    known.length && !known.some(({file, line}) => linkOf(file, line)) ? el('p', {class: 'faint'}, isKnown ? 'The path of the file does not begin with that of the repository: source_link in the configuration has a template for such paths.'
      : 'Links need the attributes vcs.repository.url.full and vcs.ref.head.revision, or source_link in the configuration.') : null);
}

export class Tooltip {
  constructor() {
    this.element = el('div', {class: 'tooltip', role: 'tooltip', hidden: true});
    document.body.append(this.element);
  }

  show(tree, node, x, y, context) {
    const frame = tree.frame[node];
    const {frames} = tree;
    const from = place(frames, frame).filter(([label]) => label === 'source' || label === 'kind' || label === 'mapping')
      .map(([label, text]) => [label, label === 'mapping' ? baseName(text) : text]);
    this.element.replaceChildren(el('b', {}, clean(tree.label(node), 240)), list([...values(tree, node, context), ...from]));
    this.element.hidden = false;
    const {offsetWidth, offsetHeight} = this.element;
    const left = x + 14 + offsetWidth > innerWidth ? Math.max(4, x - offsetWidth - 10) : x + 14;
    const top = y + 18 + offsetHeight > innerHeight ? Math.max(4, y - offsetHeight - 10) : y + 18;
    this.element.style.transform = `translate(${left}px, ${top}px)`;
  }

  hide() {
    this.element.hidden = true;
  }
}

function list(rows) {
  return el('dl', {}, rows.map(([label, text]) => el('div', {}, el('dt', {}, label), el('dd', {}, text))));
}

// Details is the panel of the selected frame.
export class Details {
  // on.close()
  constructor(host, on) {
    Object.assign(this, {host, on});
  }

  // show describes a node, or only a function (node -1), as in the table.
  show({tree, node, id, rows, unit, zoomed, scale, actions, linkOf}) {
    const {frames} = tree;
    const frame = node > 0 ? tree.frame[node] : frames.functions[id];
    const name = frames.functionName(id);
    const whole = tree.total[0];
    const numbers = node > 0 ? values(tree, node, {unit, zoomed, scale}) : [];
    const elsewhere = rows.present[id] && (node <= 0 || rows.total[id] !== tree.total[node] || rows.self[id] !== tree.self[node]);
    const all = (value, base) => (base ? scale.pair(base[id], value[id]).join(' → ') : `${formatValue(value[id], unit)} · ${formatShare(value[id], whole)}`);
    const everywhere = elsewhere ? [['in all', `self ${all(rows.self, rows.baseSelf)}, total ${all(rows.total, rows.baseTotal)}`]] : [];
    const exactly = (...columns) => columns.filter(Boolean).map((column) => formatExact(column[id])).join(' → ');
    const exact = frames.isGroup(frame) ? [] : [['exact', `self ${exactly(rows.baseSelf, rows.self)}, total ${exactly(rows.baseTotal, rows.total)} ${clean(unit, 30)}`]];
    this.host.hidden = false;
    const lines = [...numbers, ...everywhere, ...place(frames, frame), ...exact];
    const href = linkOf(frames.file[frame] ?? '', frames.line[frame]);
    refill(this.host, [name, lines, href], () => [
      el('div', {class: 'title'}, this.name(name), el('div', {class: 'actions'},
        actions.map(([label, action, hint]) => button(label, action, {title: hint})),
        button('copy name', () => copyText(name)),
        button('×', () => this.hide(true), {'aria-label': 'Close the details', title: 'Escape'}))),
      list(lines.map(([label, text]) => [label, label === 'source' && href ? sourceAnchor(href, text) : text])),
    ]);
  }

  // name shows the whole name; a long one is folded at first.
  name(text) {
    if (text.length <= 300) return el('b', {}, clean(text, 300) || '(no name)');
    return el('details', {class: 'long', open: this.unfolded === text, ontoggle: (event) => { this.unfolded = event.target.open ? text : null; }},
      el('summary', {}, el('b', {}, clean(text, 200)), el('small', {}, ` ${text.length.toLocaleString('en-US')} characters`)),
      el('pre', {}, clean(text, 2_000_000)));
  }

  hide(byUser) {
    this.host.hidden = true;
    if (byUser) this.on.close();
  }
}
