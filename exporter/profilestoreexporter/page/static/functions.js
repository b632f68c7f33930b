// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// What can be known of the function that is chosen, and done with it.

import {ask} from './api.js';
import {Details, linesSheet} from './details.js';
import {copyText, el, menu, popover} from './dom.js';
import {clean} from './format.js';
import {sourceLink} from './source.js';

// Functions shows the details, the menu and the lines of functions.
export class Functions {
  constructor(app) {
    this.app = app;
    this.details = new Details(document.getElementById('details'), {close: () => app.update({fn: '', node: ''}, {replace: true})});
  }

  render() {
    const {model, state} = this.app;
    if (!model || model.selected < 0 || ['message', 'overview', 'threads'].includes(this.app.stage.layout)) {
      this.details.hide(false);
      return;
    }
    const node = model.node > 0 && model.tree.function(model.node) === model.selected ? model.node : -1;
    this.details.show({
      tree: model.tree, node, id: model.selected, rows: model.rows, unit: model.unit, zoomed: model.zoomed, scale: model.scale,
      actions: this.actions(state.fn), linkOf: this.linkOf(model, this.only('vcs.repository.url.full'), this.only('vcs.ref.head.revision')),
    });
    if (state.view !== 'flame' && state.view !== 'heat') this.app.stage.table.select(model.selected, this.scrolledTo !== state.fn);
    this.scrolledTo = state.fn;
  }

  // actions returns what can be done with a function, by its key: [label, action, hint]. A group has no callers.
  actions(fn) {
    const [id] = this.app.model.frames.find(fn);
    return [
      ['focus', () => this.app.focusOn(fn), 'Only samples that pass through it (Shift F)'],
      ['hide', () => this.app.hideFunction(fn), 'Leave its frames out; what it calls moves to its callers (Shift H)'],
      ...(this.app.model.isGroup(id) ? [] : [['sandwich', () => this.app.update({fn, view: 'sandwich'}), 'Its callers and callees (Shift S)'],
        ['lines', () => this.showLines(fn), 'Its hottest lines']]),
      ['search', () => this.app.update({q: this.functionName(fn).slice(0, 300)}), 'Mark it everywhere'],
    ];
  }

  // only returns the value of an attribute, if the selection has one alone.
  only(key) {
    const values = this.app.attributes.filter((attribute) => attribute.key === key).flatMap((attribute) => attribute.values);
    return values.length === 1 ? values[0].value : '';
  }

  // linkOf returns a function from a file and a line of a model to the address of its source, '' where that is not known.
  linkOf({query}, repository, revision) {
    const {sourceTemplate: template} = this.app;
    const service = new Map(query).get('service');
    return (file, line) => sourceLink({file, line, repository, revision, service, template});
  }

  // showLines lists the lines of a function.
  async showLines(fn) {
    const {model} = this.app;
    const name = this.functionName(fn);
    let content;
    try {
      const answer = await ask('lines', [...model.query, ['function', name]], undefined, 'lines');
      content = linesSheet(answer, {name, unit: model.unit, total: model.whole.total[0], linkOf: this.linkOf(model, answer.repository, answer.revision), isKnown: Boolean(answer.repository && answer.revision)});
    } catch (error) {
      content = el('div', {class: 'sheet'}, el('p', {}, clean(error.message, 300)));
    }
    popover({x: 40, y: Math.max(60, innerHeight - 480)}, content, {label: 'Lines'});
  }

  // functionName returns the name of a function by its key, '' if the current answer does not have it.
  functionName(fn) {
    const [id] = this.app.model?.frames.find(fn) ?? [];
    return id === undefined ? '' : this.app.model.frames.functionName(id);
  }

  showMenu(tree, node, x, y) {
    const id = tree.function(node);
    if (id < 0) return;
    const [fn, zoom] = [this.app.model.frames.key(id), tree === this.app.model.tree ? tree.key(node) : null];
    menu({x, y}, 'Frame', [
      zoom ? ['zoom', () => this.app.update({zoom}), 'Enter'] : null,
      ...this.actions(fn).map(([label, action]) => [label, action, {focus: 'Shift F', hide: 'Shift H', sandwich: 'Shift S'}[label]]),
      ['copy name', () => copyText(this.functionName(fn))],
    ]);
  }
}
