// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// The page: reads the state from the URL, loads what it selects, and shows it. All changes go through App.update.

import {ask, progressOf} from './api.js';
import {themes} from './colors.js';
import {choices, firstComparison, marks, Scale, sinceVersion, withSide} from './compare.js';
import {Details, linesSheet, Tooltip} from './details.js';
import {button, copyText, el, menu, popover} from './dom.js';
import {FlameGraph} from './flamegraph.js';
import {clean, formatRate, formatShare, formatValue} from './format.js';
import {HeatMap} from './heatmap.js';
import {listenToKeys} from './keys.js';
import {renderFindings, ui} from './messages.js';
import {dataKey, loadAll, loadFindings} from './load.js';
import {problemOf, renderNotices} from './notices.js';
import {Overview} from './overview.js';
import {renderPath} from './path.js';
import {pngOf, save, svgOf} from './picture.js';
import {Search} from './search.js';
import {sourceLink} from './source.js';
import {BaseBar, SelectionBar, typeKey} from './selection.js';
import {defaultSeconds, formatState, hasPart, isByTime, isCompared, parseState, queryOf} from './state.js';
import {FunctionTable} from './table.js';
import {extentOf, Threads} from './threads.js';
import {Timeline} from './timeline.js';
import {Toolbar} from './toolbar.js';

const $ = (id) => document.getElementById(id);
const darkScheme = matchMedia('(prefers-color-scheme: dark)');

class App {
  constructor() {
    Object.assign(this, {
      state: parseState(location.hash), services: 0, profiles: [], attributes: [], versions: [], senders: [], troubles: {}, status: null, overview: null, model: null, moments: null, times: null,
      error: null, loaded: '', answered: '', shown: {from: 0, until: 0, now: 0}, layout: '',
    });
    this.update = this.update.bind(this);
    this.finder = new Search(() => this.render());
    this.selection = new SelectionBar($('selection'), this);
    this.baseBar = new BaseBar($('base'), this);
    this.toolbar = new Toolbar($('toolbar'), this);
    this.timeline = new Timeline($('timeline'), {
      select: (from, until) => this.update({time: {from: Math.round(from), until: Math.round(until)}}),
      base: (from, until) => this.update({view: 'diff', base: {...this.state.base, time: {from: Math.round(from), until: Math.round(until)}}}),
      all: () => this.update({time: {}}),
      group: (name) => this.pickGroup(name),
      version: (version) => this.update(sinceVersion(this.state, version, this.versionTime(version))),
    });
    this.tooltip = new Tooltip();
    this.details = new Details($('details'), {close: () => this.update({fn: '', node: ''}, {replace: true})});
    this.graph = this.newGraph('Flame graph', false, () => this.model.tree);
    this.callers = this.newGraph('Callers', true, () => this.model.sides(this.state).callers);
    this.callees = this.newGraph('Callees', false, () => this.model.sides(this.state).callees);
    this.table = new FunctionTable({
      select: (id) => this.update({fn: this.model.frames.key(id), node: ''}, {replace: true}),
      open: (id) => this.update({fn: this.model.frames.key(id), node: '', view: 'sandwich'}),
      sort: (sort) => this.update({sort}),
    });
    this.start = new Overview(this);
    this.heatmap = new HeatMap({select: (part) => this.update({part, zoom: '', node: ''})});
    this.threads = new Threads({range: (part) => this.update({part})});
    addEventListener('popstate', () => this.follow(parseState(location.hash)));
    darkScheme.addEventListener('change', () => this.render());
    document.addEventListener('visibilitychange', () => document.hidden || this.load());
    listenToKeys(this);
    this.render();
    this.load();
  }

  get theme() {
    const dark = this.state.theme ? this.state.theme === 'dark' : darkScheme.matches;
    return dark ? themes.dark : themes.light;
  }

  // url returns the whole address of a path of this origin.
  url(path) {
    return new URL(path, document.baseURI).href;
  }

  // newGraph returns a graph of a tree. A click in the main graph zooms; in a sandwich it selects the function clicked.
  newGraph(label, upwards, treeOf) {
    const graph = new FlameGraph({label, upwards, on: {
      choose: (node, zooms) => {
        const tree = treeOf();
        const id = tree.function(node);
        const place = tree === this.model.tree ? {node: tree.key(node), ...(zooms ? {zoom: tree.key(node)} : {})} : {node: ''};
        $('spoken').textContent = `${clean(tree.label(node), 200)}, ${formatValue(tree.total[node], this.model.unit)}, ${formatShare(tree.total[node], tree.total[0])}`;
        this.update({fn: id < 0 ? '' : this.model.frames.key(id), ...place}, {replace: !zooms});
      },
      menu: (node, x, y) => this.showMenu(treeOf(), node, x, y),
      hover: (node, x, y) => {
        if (node < 0) this.tooltip.hide();
        else this.tooltip.show(treeOf(), node, x, y, {unit: this.model.unit, zoomed: graph.zoomed, scale: this.model.scale, ofCallers: upwards});
      },
    }});
    return graph;
  }

  // update changes the state, writes it to the URL (as a new entry of the history unless replace says otherwise), and loads
  // or renders what follows from it.
  update(patch, {replace = false} = {}) {
    const state = {...this.state, ...('time' in patch ? {part: null} : {}), ...patch}; // a part is one of the time
    this.write(state, replace);
    this.follow(state);
  }

  // write changes the URL. Browsers refuse that if it happens too often (Safari: 100 times in 30 s); the next change succeeds.
  write(state, replace) {
    const hash = `#${formatState(state)}`;
    if (hash === location.hash) return;
    try {
      history[replace ? 'replaceState' : 'pushState'](null, '', hash === '#' ? location.pathname + location.search : hash);
    } catch (error) {
      console.warn(error);
    }
  }

  follow(state) {
    this.state = state;
    if (this.status) this.shown = this.shownTime(); // at once, so that keys can move it again
    if (dataKey(state) !== this.loaded) this.load();
    this.render();
  }

  // load requests everything that the state selects. While the page is live, or the collector does not respond or has a fault, it
  // repeats that. After an error, an earlier answer to the same request stays; one to another would stand under a wrong heading.
  async load() {
    clearTimeout(this.timer);
    this.loading?.abort();
    this.loading = new AbortController();
    this.loadName = crypto.randomUUID?.() ?? `${performance.now()}-${Math.random()}`; // randomUUID is for https and localhost
    $('progress').hidden = true;
    const {signal} = this.loading;
    this.loaded = dataKey(this.state);
    this.setLoading(true);
    this.watch(signal);
    let error = null;
    try {
      if (!(await loadAll(this, signal))) return;
    } catch (failure) {
      error = failure;
      if (signal.aborted) return;
      if (!(failure instanceof Error) || failure.status === undefined) console.error(failure);
    }
    this.setLoading(false);
    this.error = error;
    if (!error) this.answered = this.loaded;
    else if (this.answered !== this.loaded) Object.assign(this, {model: null, moments: null, times: null});
    const resolution = this.status?.resolution_ms ?? 10_000;
    const again = error ? 5000 : this.isStart ? 15_000 : Math.min(10_000, Math.max(1000, resolution / 2));
    const temporary = error?.status === 0 || error?.status >= 500;
    if ((temporary || !this.state.time.from || !this.services) && !document.hidden) this.timer = setTimeout(() => this.load(), again);
    this.render(); // last: whatever it cannot draw, the next answer may be fine
    if (!error) loadFindings(this);
  }

  // watch shows how far a load is that takes longer than a second, and a way to end it.
  async watch(signal) {
    const wait = (ms) => new Promise((resolve) => { setTimeout(resolve, ms); });
    const isOver = () => signal.aborted || this.loading?.signal !== signal || !document.body.classList.contains('loading');
    for (await wait(1000); !isOver(); await wait(500)) {
      const {blocks = 0, blocks_read: read = 0} = (await progressOf(this.loadName, signal)) ?? {};
      if (isOver()) return;
      if ($('progress').hidden) {
        $('progress').replaceChildren(el('progress', {'aria-label': 'Blocks that were read'}), el('span'), button('cancel', () => this.cancel()));
      }
      const [bar, text] = $('progress').children;
      if (blocks) Object.assign(bar, {max: blocks, value: read});
      text.textContent = blocks ? `${read} of ${blocks} blocks read` : 'The query waits for others …';
      $('progress').hidden = false;
    }
  }

  // cancel ends a load. What is shown stays, if it is of the same selection.
  cancel() {
    this.loading.abort();
    this.setLoading(false);
    this.error = Object.assign(new Error('The query was cancelled.'), {hint: 'Choose a shorter time, or load again.', status: 499});
    if (this.answered !== this.loaded) Object.assign(this, {model: null, moments: null, times: null});
    this.render();
  }

  setLoading(loading) {
    if (!loading) $('progress').hidden = true;
    document.body.classList.toggle('loading', loading);
    $('main').setAttribute('aria-busy', String(loading));
  }

  // isStart reports that no service is chosen, and all are listed.
  get isStart() {
    return !this.state.service;
  }

  // isAnswered reports whether there is something to draw the view from.
  get isAnswered() {
    const {state, moments, model} = this;
    return (!isByTime(state) || moments?.view === state.view) && (state.view === 'threads' || Boolean(model));
  }

  // hasMoments reports whether a view by time has something to show, now or after zooming out of a part.
  get hasMoments() {
    const {state, moments} = this;
    if (!isByTime(state) || moments?.view !== state.view) return false;
    return state.view === 'heat' ? moments.answer.observations > 0 : hasPart(state) || moments.answer.start.length > 0;
  }

  // offers reports whether a view has something to show: two of them need timestamps.
  offers(view) {
    if (view === 'heat') return Boolean(this.row?.timestamps);
    return view !== 'threads' || this.profiles.some((row) => row.service === this.state.service && row.timestamps);
  }

  // shownTime returns the state's time as a range, by the collector's clock.
  shownTime() {
    const {time} = this.state;
    const {now} = this.status;
    if (time.from) return {...time, now};
    const from = time.seconds ? now - time.seconds * 1000 : Math.min(this.row?.from ?? now - 60e3, now - 1000);
    return {from, until: now, now};
  }

  // bothTimes returns the time from the first of two that are compared to the last.
  bothTimes() {
    const {base} = this.state;
    return {from: Math.min(this.shown.from, base.time.from), until: Math.max(this.shown.until, base.time.until)};
  }

  // groupKey is the attribute that the time line is divided by: what is compared, or else what the user has chosen.
  get groupKey() {
    const {state} = this;
    return (state.view === 'diff' && state.base.attrs[0]?.[0]) || state.group_by;
  }

  pickGroup(name) {
    const {state, groupKey: key} = this;
    const choice = state.view === 'diff' && this.choices.find((candidate) => candidate.key === key);
    this.update(choice ? withSide(state, choice, 'value', name) : {attrs: [...state.attrs.filter(([other]) => other !== key), [key, name]]});
  }

  // choices are the attributes whose values can be compared.
  get choices() {
    return choices(this.attributes, this.versions);
  }

  // versionTime returns the time around the first appearance of a version that can be compared: until now, or half of the shown time.
  versionTime({from}) {
    const half = Math.max(60e3, (this.shown.until - this.shown.from) / 2);
    return {from: Math.max(this.row.from, from - half), until: Math.min(this.status.now, from + half)};
  }

  // extent returns what the time line shows: all times with this profile, and all that is selected.
  extent() {
    const {now} = this.status;
    const {base, time} = this.state;
    // A profile at the very edge could not be seen.
    const first = this.row.from - Math.max(this.status.resolution_ms, (this.row.until - this.row.from) / 100);
    const from = Math.min(first, time.from ?? Infinity, base.time?.from ?? Infinity);
    const until = Math.max(time.from ? this.row.until : now, time.until ?? 0, base.time?.until ?? 0);
    return {from: Math.round(Math.max(Math.min(from, until - 120e3), until - Math.max(30 * 86400e3, this.status.window_ms))), until: Math.round(until)};
  }

  render() {
    const {state, theme} = this;
    document.documentElement.dataset.theme = theme.dark ? 'dark' : 'light';
    document.title = state.service ? `${clean(state.service, 60)} · ${clean(state.profile, 40)} – otelcol-profiles` : 'otelcol-profiles';
    if (this.model) this.model.build(state, this.finder, this.scale());
    this.selection.render();
    this.baseBar.render(this.model?.compared ? this.comparison() : '');
    this.toolbar.render({total: this.model ? this.model.total : null, unit: this.model?.unit, found: this.model?.found, rate: this.rate()});
    document.body.classList.toggle('start', this.isStart);
    $('timeline').hidden = !this.times;
    if (this.times) this.timeline.show({...this.times, isCPU: this.isCPU, marks: marks(this.versions, this.times.extent), selection: this.shown, base: state.view === 'diff' ? state.base.time : null, theme});
    renderNotices(this);
    renderFindings($('findings'), state.view !== 'diff' && !this.isStart && this.findings?.service === state.service ? this.findings.list : []);
    renderPath($('path'), this);
    this.renderMain();
    this.renderDetails();
  }

  // rate returns the total by time, over the part of the shown time that has profiles: '' for a state, which is a mean.
  rate() {
    const {answer, total, unit} = this.model ?? {};
    if (!answer || answer.kind === 'gauge' || hasPart(this.state)) return '';
    const ms = Math.min(answer.until, this.shown.until) - Math.max(answer.from, this.shown.from);
    return ms > 0 ? formatRate(total / ms * 1000, unit, this.isCPU) : '';
  }

  get isCPU() {
    return this.state.profile === 'process_cpu';
  }

  // scale returns how two sides are compared: two times by rate, unless the state says otherwise, values of an attribute by share.
  scale() {
    const {state, shown, model, isCPU} = this;
    return new Scale({norm: state.norm, kind: model.answer.kind, unit: model.unit, isCPU, shown, base: state.base.time});
  }

  comparison() {
    const {model} = this;
    return model.scale.pair(model.baseTotal, model.total).join(' → ');
  }

  // beforeHalves is the view and time before setView halved the time, null if other times are shown by now.
  get beforeHalves() {
    return this.halved?.from === this.state.time.from ? this.halved.before : null;
  }

  renderMain() {
    const {model, state} = this;
    const problem = problemOf(this);
    const layout = problem ? 'message' : this.isStart ? 'overview' : state.view === 'sandwich' && !model.hasSides ? 'choose' : state.view;
    if (layout !== this.layout || problem) this.arrange(layout, problem);
    if (problem) return;
    if (layout === 'overview') {
      this.start.show(this.overview, this.types);
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
      this.graph.show(model.tree, model.style(model.tree, state, this.theme), {zoomed: model.zoomed, cursor: model.node, upwards: state.direction === 'flame'});
    }
    this.measure();
  }

  // renderMoments draws what the two views by time show, once their answer is there.
  renderMoments() {
    const {state, theme, moments, shown} = this;
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
    const {model, state, theme} = this;
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

  renderDetails() {
    const {model, state} = this;
    if (!model || model.selected < 0 || ['message', 'overview', 'threads'].includes(this.layout)) {
      this.details.hide(false);
      return;
    }
    const node = model.node > 0 && model.tree.function(model.node) === model.selected ? model.node : -1;
    this.details.show({
      tree: model.tree, node, id: model.selected, rows: model.rows, unit: model.unit, zoomed: model.zoomed, scale: model.scale,
      actions: this.actions(state.fn), linkOf: this.linkOf(this.only('vcs.repository.url.full'), this.only('vcs.ref.head.revision')),
    });
    if (state.view !== 'flame' && state.view !== 'heat') this.table.select(model.selected, this.scrolledTo !== state.fn);
    this.scrolledTo = state.fn;
  }

  // actions returns what can be done with a function, by its key: [label, action, hint]. A group has no callers.
  actions(fn) {
    const [id] = this.model.frames.find(fn);
    return [
      ['focus', () => this.focusOn(fn), 'Only samples that pass through it (Shift F)'],
      ['hide', () => this.hideFunction(fn), 'Leave its frames out; what it calls moves to its callers (Shift H)'],
      ...(this.model.isGroup(id) ? [] : [['sandwich', () => this.update({fn, view: 'sandwich'}), 'Its callers and callees (Shift S)']]),
      ...(this.model.isGroup(id) ? [] : [['lines', () => this.showLines(fn), 'Its hottest lines']]),
      ['search', () => this.update({q: this.functionName(fn).slice(0, 300)}), 'Mark it everywhere'],
    ];
  }

  // only returns the value of an attribute, if the selection has one alone.
  only(key) {
    const values = this.attributes.filter((attribute) => attribute.key === key).flatMap((attribute) => attribute.values);
    return values.length === 1 ? values[0].value : '';
  }

  // linkOf returns a function from a file and a line to the address of its source, '' where that is not known.
  linkOf(repository, revision) {
    const {sourceTemplate: template, state: {service}} = this;
    return (file, line) => sourceLink({file, line, repository, revision, service, template});
  }

  // showLines lists the lines of a function.
  async showLines(fn) {
    const {state, model} = this;
    const name = this.functionName(fn);
    let content;
    try {
      const answer = await ask('lines', [...queryOf(state), ['function', name]], undefined, 'lines');
      content = linesSheet(answer, {name, unit: model.unit, total: model.total, linkOf: this.linkOf(answer.repository, answer.revision), isKnown: Boolean(answer.repository && answer.revision)});
    } catch (error) {
      content = el('div', {class: 'sheet'}, el('p', {}, clean(error.message, 300)));
    }
    popover({x: 40, y: Math.max(60, innerHeight - 480)}, content, {label: 'Lines'});
  }

  // functionName returns the name of a function by its key, '' if the current answer does not have it.
  functionName(fn) {
    const [id] = this.model?.frames.find(fn) ?? [];
    return id === undefined ? '' : this.model.frames.functionName(id);
  }

  showMenu(tree, node, x, y) {
    const id = tree.function(node);
    if (id < 0) return;
    const [fn, zoom] = [this.model.frames.key(id), tree === this.model.tree ? tree.key(node) : null];
    menu({x, y}, 'Frame', [
      zoom ? ['zoom', () => this.update({zoom}), 'Enter'] : null,
      ...this.actions(fn).map(([label, action]) => [label, action, {focus: 'Shift F', hide: 'Shift H', sandwich: 'Shift S'}[label]]),
      ['copy name', () => copyText(this.functionName(fn))],
    ]);
  }

  // pickService keeps a profile that was chosen, if the service has it.
  pickService(service) {
    this.picked = service;
    this.update({service, attrs: [], group_by: '', zoom: '', node: '', part: null});
  }

  pickType(key) {
    const row = this.profiles.find((candidate) => typeKey(candidate) === key);
    if (row) this.update({profile: row.profile, type: row.type, isAuto: false});
  }

  // setView shows another view. A comparison that has no base yet starts with two values of an attribute, or the two halves of the time.
  setView(view) {
    const starts = view === 'diff' && !isCompared(this.state);
    const values = starts && firstComparison(this.state, {attributes: this.attributes, versions: this.versions, groups: this.times?.answer.groups ?? []});
    const halves = !starts ? {} : values || this.halves();
    if (halves.base?.time) this.halved = {from: halves.time.from, before: {view: this.state.view, time: this.state.time}, whole: this.shown};
    this.update({view, ...halves});
  }

  compareHalves() {
    const {state} = this;
    const without = {attrs: state.attrs.filter(([key]) => !state.base.attrs.some(([name]) => name === key)), base: {service: '', time: null, attrs: []}};
    const halves = this.halves();
    this.update({...without, ...halves, base: {...without.base, time: halves.base?.time ?? null}});
  }

  // halves returns an initial comparison: the later half of the samples' time with the earlier one. They meet between two steps of
  // the time line, unless these are too coarse for the shown time.
  halves() {
    const {times, shown} = this;
    if (!times) return {};
    const {answer} = times;
    const step = answer.step_ms;
    let [first, last] = [Infinity, 0];
    for (const {values} of answer.groups) {
      values.forEach((value, i) => {
        const start = answer.from + i * step;
        if (value === null || start + step <= shown.from || start >= shown.until) return;
        [first, last] = [Math.min(first, start), Math.max(last, start + step)];
      });
    }
    if (last - first > step) [first, last] = [Math.max(first, shown.from), Math.min(last, shown.until)];
    else [first, last] = [shown.from, shown.until];
    let middle = (first + last) / 2;
    if (last - first >= 8 * step) middle = answer.from + Math.round((middle - answer.from) / step) * step;
    middle = Math.round(middle);
    return {time: {from: middle, until: Math.round(last)}, base: {...this.state.base, time: {from: Math.round(first), until: middle}}};
  }

  swapSides() {
    const {state, shown} = this;
    const {base} = state;
    const keys = new Set(base.attrs.map(([key]) => key));
    this.update({
      service: base.service || state.service,
      time: base.time ?? state.time,
      attrs: [...state.attrs.filter(([key]) => !keys.has(key)), ...base.attrs],
      base: {
        service: base.service ? state.service : '',
        time: base.time ? {from: Math.round(shown.from), until: Math.round(shown.until)} : null,
        attrs: state.attrs.filter(([key]) => keys.has(key)),
      },
    });
  }

  toggleLive() {
    const {time} = this.state;
    if (time.from) this.update({time: this.liveTime ?? {seconds: defaultSeconds}});
    else {
      this.liveTime = time;
      this.update({time: {from: Math.round(this.shown.from), until: Math.round(this.shown.until)}, part: this.state.part});
    }
  }

  shift(spans) {
    const {from, until} = this.shown;
    const by = Math.round((until - from) * spans);
    this.update({time: {from: Math.round(from) + by, until: Math.round(until) + by}});
  }

  // nextMatch selects the next frame that matches the search, the largest first, and scrolls to it.
  nextMatch(step) {
    const {model, state} = this;
    const {matches, tree, frames} = model ?? {matches: []};
    if (!matches.length) return;
    const at = matches.indexOf(model.node);
    const node = matches[at < 0 ? (step > 0 ? 0 : matches.length - 1) : (at + step + matches.length) % matches.length];
    this.update({fn: frames.key(tree.function(node)), node: tree.key(node)}, {replace: true});
    if (state.view !== 'table' && state.view !== 'sandwich') this.graph.reveal(node);
  }

  // savePicture saves what is drawn of the flame graph as a file.
  async savePicture(kind) {
    const {service, profile} = this.state;
    const {graph} = this;
    if (!this.model || !graph.tree || !graph.width) return;
    const name = `${service}-${profile}`.replace(/[^\w.-]+/g, '_').slice(-100);
    save(kind === 'svg' ? svgOf(graph, document.title) : await pngOf(graph), `${name}.${kind}`);
  }

  toggleTheme() {
    this.update({theme: this.theme.dark ? 'light' : 'dark'}, {replace: true});
  }

  flip() {
    this.update({direction: this.state.direction === 'flame' ? 'icicle' : 'flame'});
  }

  zoomTo(node) {
    if (this.model) this.update({zoom: this.model.tree.key(node)});
  }

  zoomOut() {
    if (this.model?.zoomed) this.zoomTo(this.model.tree.parent[this.model.zoomed]);
  }

  focusOn(fn) {
    if (fn) this.update({focus: fn, zoom: '', node: ''});
  }

  hideFunction(fn) {
    if (fn) this.update({hide: [...new Set([...this.state.hide, fn])], zoom: '', fn: '', node: ''});
  }

  // escape removes one restriction of the view, the innermost first.
  escape() {
    const {state} = this;
    if (state.fn) this.update({fn: '', node: ''}, {replace: true});
    else if (state.zoom) this.update({zoom: ''});
    else if (state.q) this.update({q: ''});
    else if (state.focus || state.hide.length || state.fold) this.update({focus: '', hide: [], fold: ''});
    else if (hasPart(state)) this.update({part: null});
  }
}

new App();
