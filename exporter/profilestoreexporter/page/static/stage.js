// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// The middle of the page: the view that the state names.

import {Tooltip} from './details.js';
import {el} from './dom.js';
import {FlameGraph} from './flamegraph.js';
import {clean, formatShare, formatValue} from './format.js';
import {HeatMap} from './heatmap.js';
import {ui} from './messages.js';
import {problemOf} from './notices.js';
import {Overview} from './overview.js';
import {hasPart} from './state.js';
import {FunctionTable} from './table.js';
import {extentOf, Threads} from './threads.js';

const $ = (id) => document.getElementById(id);

// Stage has one element for each view, and shows those of the current one.
export class Stage {
  constructor(app) {
    Object.assign(this, {app, layout: '', tooltip: new Tooltip()});
    this.graph = this.newGraph('Flame graph', false, () => app.model.tree);
    this.callers = this.newGraph('Callers', true, () => app.model.sides(app.state).callers);
    this.callees = this.newGraph('Callees', false, () => app.model.sides(app.state).callees);
    this.table = new FunctionTable({
      select: (id) => app.update({fn: app.model.frames.key(id), node: ''}, {replace: true}),
      open: (id) => app.update({fn: app.model.frames.key(id), node: '', view: 'sandwich'}),
      sort: (sort) => app.update({sort}),
    });
    this.start = new Overview(app);
    this.heatmap = new HeatMap({select: (part) => app.update({part, zoom: '', node: ''})});
    this.threads = new Threads({range: (part) => app.update({part})});
  }

  // newGraph returns a graph of a tree. A click in the main graph zooms; in a sandwich it selects the function clicked.
  newGraph(label, upwards, treeOf) {
    const graph = new FlameGraph({label, upwards, on: {
      choose: (node, zooms) => {
        const tree = treeOf();
        const id = tree.function(node);
        const place = tree === this.app.model.tree ? {node: tree.key(node), ...(zooms ? {zoom: tree.key(node)} : {})} : {node: ''};
        $('spoken').textContent = `${clean(tree.label(node), 200)}, ${formatValue(tree.total[node], this.app.model.unit)}, ${formatShare(tree.total[node], tree.total[0])}`;
        this.app.update({fn: id < 0 ? '' : this.app.model.frames.key(id), ...place}, {replace: !zooms});
      },
      menu: (node, x, y) => this.app.functions.showMenu(treeOf(), node, x, y),
      hover: (node, x, y) => {
        if (node < 0) this.tooltip.hide();
        else this.tooltip.show(treeOf(), node, x, y, {unit: this.app.model.unit, zoomed: graph.zoomed, scale: this.app.model.scale, ofCallers: upwards});
      },
    }});
    return graph;
  }

  render() {
    const {model, state} = this.app;
    const problem = problemOf(this.app);
    const layout = problem ? 'message' : this.app.isStart ? 'overview' : state.view === 'sandwich' && !model.hasSides ? 'choose' : state.view;
    if (layout !== this.layout || problem) this.arrange(layout, problem);
    if (problem) return;
    if (layout === 'overview') {
      this.start.show(this.app.overview, this.app.types);
      return;
    }
    if (layout === 'heat' || layout === 'threads') this.renderMoments();
    if (layout === 'threads') return;
    if (state.view !== 'flame' && state.view !== 'heat') {
      this.table.show({
        frames: model.frames, rows: model.rows, matched: model.found.matched, columns: model.columns, sort: state.sort,
        selected: model.selected, compared: model.compared,
      });
    }
    if (state.view === 'sandwich') {
      if (layout !== 'choose') this.renderSandwich();
    } else if (state.view !== 'table') {
      this.graph.show(model.tree, model.style(model.tree, state, this.app.theme), {zoomed: model.zoomed, cursor: model.node, upwards: state.direction === 'flame'});
    }
    this.measure();
  }

  // renderMoments draws what the two views by time show, once their answer is there.
  renderMoments() {
    const {state, theme, moments, shown} = this.app;
    if (moments?.view !== state.view) return;
    const {answer} = moments;
    if (state.view === 'heat') this.heatmap.show({answer, part: state.part, theme});
    else {
      // Without a part all events fill the width, and that is how far one can zoom out again.
      if (!state.part) this.wholeEvents = extentOf(answer, shown);
      const whole = this.wholeEvents ?? shown;
      this.threads.show({answer, service: state.service, ...(state.part ?? whole), whole, zoomed: hasPart(state), theme});
    }
  }

  // measure records how long the first paint of the page took, once it had an answer.
  measure() {
    if (!performance.getEntriesByName('page-answer').length) return;
    this.graph.paint();
    performance.measure('page-paint', 'page-answer');
    performance.clearMarks('page-answer');
  }

  renderSandwich() {
    const {model, state, theme} = this.app;
    const {callers, callees} = model.sides(state);
    for (const [graph, tree] of [[this.callers, callers], [this.callees, callees]]) {
      graph.show(tree, model.style(tree, state, theme));
    }
    const {rows, selected, unit, total} = model;
    this.sandwichTitle.replaceChildren(el('b', {}, clean(model.frames.label(selected), 160)),
      ` self ${formatValue(rows.self[selected], unit)} · ${formatShare(rows.self[selected], total)}, total ${formatValue(rows.total[selected], unit)} · ${formatShare(rows.total[selected], total)}`);
  }

  // arrange adds the elements of a view to the page.
  arrange(layout, problem) {
    this.layout = layout;
    const main = $('main');
    main.className = layout === 'message' ? '' : layout;
    this.tooltip.hide();
    if (layout === 'message') main.replaceChildren(problem);
    else if (layout === 'overview') main.replaceChildren(this.start.element);
    else if (layout === 'flame') main.replaceChildren(this.graph.element);
    else if (layout === 'heat') main.replaceChildren(this.heatmap.element, this.graph.element);
    else if (layout === 'threads') main.replaceChildren(this.threads.element);
    else if (layout === 'table') main.replaceChildren(this.table.element);
    else if (layout === 'choose') main.replaceChildren(this.table.element, ui.chooseFunction());
    else if (layout === 'sandwich') {
      this.sandwichTitle = el('p', {class: 'middle'});
      main.replaceChildren(this.table.element, el('div', {class: 'stack'},
        el('h2', {}, 'callers'), this.callers.element, this.sandwichTitle, this.callees.element, el('h2', {}, 'callees')));
    } else main.replaceChildren(this.graph.element, this.table.element);
  }
}
