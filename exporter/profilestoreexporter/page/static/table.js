// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// The table of functions. Only the rows in view are in the document, each with its number for screen readers.

import {shortName} from './colors.js';
import {el, refill} from './dom.js';
import {formatCount, formatValue, formatShare, formatChange, formatPercent} from './format.js';

const rowHeight = 23;

// columnsFor returns the columns of a table of one selection, or of two that are compared. A column is sorted by `value`; its
// cells are two texts, of which the second is fainter; `sign` returns whether a value grew or shrank.
export function columnsFor({compared, unit, total, baseTotal, scale}) {
  const name = {key: 'name', label: 'Function', cells: () => []};
  if (!compared) {
    return (rows) => [name, ...[['self', 'Self'], ['total', 'Total']].map(([key, label]) => ({
      key, label, value: (id) => rows[key][id], share: (id) => Math.abs(rows[key][id]) / (total || 1),
      cells: (id) => [formatValue(rows[key][id], unit), formatShare(rows[key][id], total)],
    }))];
  }
  const {byShare} = scale;
  const factor = !byShare ? scale.factor : baseTotal && total ? total / baseTotal : 1;
  return (rows) => {
    const plain = (key, label, side, hint) => ({key, label, hint, value: (id) => rows[key][id], cells: (id) => [scale.pair(rows.baseTotal[id], rows.total[id], true)[side]]});
    const change = (key, base, label) => {
      const value = (id) => rows[key][id] - rows[base][id] * factor;
      const points = (id) => 100 * (rows[key][id] / (total || 1) - rows[base][id] / (baseTotal || 1));
      const text = (id) => (byShare ? formatPercent(points(id), '+').replace('%', 'pp') : scale.change(rows[base][id], rows[key][id], true));
      return {
        key: `change_${key}`, label, value, sign: (id) => (/[1-9]/.test(text(id)) ? value(id) : 0), // +0.00 has no colour
        cells: (id) => [text(id), formatChange(rows[key][id], rows[base][id] * factor)],
      };
    };
    return [name, plain('baseTotal', `Base${scale.unitOfTable}`, 0, 'Total of the base'), plain('total', 'Shown', 1, 'Total of what is shown'), change('self', 'baseSelf', 'Self ±'), change('total', 'baseTotal', 'Total ±')];
  };
}

// order returns the functions in the order of a sort key ('self', or '-self' for the reverse).
export function order(ids, frames, columns, sort) {
  const reverse = sort.startsWith('-') ? -1 : 1;
  const key = sort.replace(/^-/, '');
  const column = columns.find((c) => c.key === key) ?? columns[1];
  const byName = (a, b) => (frames.functionName(a) < frames.functionName(b) ? -1 : 1);
  if (column.key === 'name') return ids.sort((a, b) => reverse * byName(a, b));
  const {value} = column;
  const compare = column.key.startsWith('change_') ? byChange : (one, other) => other - one;
  return ids.sort((a, b) => reverse * compare(value(a), value(b)) || a - b);
}

// byChange orders changes, the largest first. What one function gains as a share, others lose, so two can change by as
// much but for the rounding: then what grew is before what shrank.
function byChange(one, other) {
  const [size, otherSize] = [Math.abs(one), Math.abs(other)];
  const areEqual = Math.abs(size - otherSize) <= 1e-9 * size;
  return areEqual ? Math.sign(other) - Math.sign(one) : otherSize - size;
}

export class FunctionTable {
  // on.select(function), on.open(function), on.sort(key)
  constructor(on) {
    Object.assign(this, {on, ids: [], selected: -1});
    this.head = el('div', {role: 'row', class: 'head'});
    this.body = el('div', {class: 'body', role: 'rowgroup'});
    this.note = el('p', {class: 'note', role: 'status'});
    // The grid itself scrolls: what scrolls must have the focus.
    this.scroller = el('div', {class: 'scroller', role: 'grid', tabindex: 0, 'aria-label': 'Functions'}, el('div', {role: 'rowgroup', class: 'top'}, this.head), this.body);
    this.element = el('div', {class: 'table'}, this.scroller, this.note);
    this.scroller.addEventListener('scroll', () => this.render());
    this.scroller.addEventListener('keydown', (event) => event.target === this.scroller && this.key(event));
    new ResizeObserver(() => this.render()).observe(this.scroller);
  }

  // show lists the functions of rows (functionTotals) that match.
  show({frames, rows, matched, columns, sort, selected, compared}) {
    this.columns = columns(rows);
    // What has changed itself is to blame, not what calls it.
    if (!this.columns.some(({key}) => key === sort.replace(/^-/, ''))) sort = compared ? 'change_self' : 'self';
    if (rows !== this.rows || matched !== this.matched || sort !== this.sort) {
      const ids = [];
      for (let id = 0; id < rows.present.length; id++) if (rows.present[id] && (!matched || matched[id])) ids.push(id);
      this.ids = order(ids, frames, this.columns, sort);
    }
    Object.assign(this, {frames, rows, matched, sort, selected});
    this.element.classList.toggle('compared', compared);
    this.scroller.setAttribute('aria-rowcount', this.ids.length + 1);
    this.head.setAttribute('aria-rowindex', 1);
    refill(this.head, this.columns.map(({key, label}) => [key, label]), () => this.columns.map(({key, label, hint, sign}) =>
      el('div', {role: 'columnheader', class: key === 'name' ? 'name' : `number ${sign ? 'change' : ''}`},
        el('button', {type: 'button', title: hint ?? null, onclick: () => this.on.sort(this.sort === key ? `-${key}` : key)}, label, el('span', {'aria-hidden': 'true'})))));
    this.columns.forEach(({key}, i) => {
      const sorted = sort.replace(/^-/, '') === key;
      const down = (key === 'name') === sort.startsWith('-');
      this.head.children[i].setAttribute('aria-sort', sorted ? (down ? 'descending' : 'ascending') : 'none');
      this.head.children[i].querySelector('span').textContent = sorted ? (down ? ' ↓' : ' ↑') : '';
    });
    this.note.textContent = matched ? `${formatCount(this.ids.length, 'function')} found.` : this.ids.length ? '' : 'No functions.';
    this.body.style.height = `${this.ids.length * rowHeight}px`;
    this.render();
  }

  // select marks a function, and scrolls to it if it was chosen elsewhere.
  select(id, scroll) {
    this.selected = id;
    const position = this.ids.indexOf(id);
    if (scroll && position >= 0) {
      const top = position * rowHeight;
      const {scrollTop, clientHeight} = this.scroller;
      if (top < scrollTop || top + 2 * rowHeight > scrollTop + clientHeight) this.scroller.scrollTop = top - clientHeight / 2;
    }
    this.render();
  }

  render() {
    if (!this.columns) return;
    const {scrollTop, clientHeight} = this.scroller;
    const first = Math.max(0, Math.floor(scrollTop / rowHeight) - 4);
    const last = Math.min(this.ids.length, Math.ceil((scrollTop + clientHeight) / rowHeight) + 4);
    const rows = [];
    for (let i = first; i < last; i++) rows.push(this.row(this.ids[i], i));
    this.body.replaceChildren(...rows);
  }

  row(id, position) {
    const label = this.frames.label(id);
    const row = el('div', {
      role: 'row', class: 'row', 'aria-rowindex': position + 2, 'aria-selected': String(id === this.selected), id: `function-${id}`,
      onclick: () => this.on.select(id), ondblclick: () => this.on.open(id),
    }, this.columns.map((column) => {
      if (column.key === 'name') return nameCell(label);
      const [value, share] = column.cells(id);
      const cell = el('div', {role: 'gridcell', class: `number ${column.sign ? `change ${signClass(column.sign(id))}` : ''}`}, el('span', {}, value), share ? el('small', {}, share) : null);
      if (column.share) cell.style.setProperty('--share', `${(100 * Math.min(1, column.share(id))).toFixed(1)}%`);
      return cell;
    }));
    row.style.top = `${position * rowHeight}px`;
    if (id === this.selected) this.scroller.setAttribute('aria-activedescendant', row.id);
    return row;
  }

  key(event) {
    const page = Math.max(1, Math.floor(this.scroller.clientHeight / rowHeight) - 1);
    const step = {ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -Infinity, End: Infinity}[event.key];
    if (event.key === 'Enter' && this.selected >= 0) this.on.open(this.selected);
    if (!step || !this.ids.length) return;
    event.preventDefault();
    const next = Math.max(0, Math.min(this.ids.length - 1, this.ids.indexOf(this.selected) + step));
    this.select(this.ids[next], true);
    this.on.select(this.ids[next]);
  }
}

// nameCell returns a function's name. If there is not enough room, the directories of its package are cut first.
function nameCell(label) {
  const own = shortName(label);
  return el('div', {role: 'gridcell', class: 'name', title: label}, el('span', {class: 'path'}, label.slice(0, label.length - own.length)), el('span', {}, own));
}

function signClass(change) {
  return change > 0 ? 'more' : change < 0 ? 'less' : '';
}
