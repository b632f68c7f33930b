// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// The page: reads the state from the URL, loads what it selects, and shows it. All changes go through App.update.

import {themes} from './colors.js';
import {choices, firstComparison, halves, marks, Scale, sinceVersion, swapped, withSide} from './compare.js';
import {clean, formatRate} from './format.js';
import {Functions} from './functions.js';
import {listenToKeys} from './keys.js';
import {dataKey, namesKey} from './load.js';
import {Loader} from './loader.js';
import {renderFindings} from './messages.js';
import {renderNotices} from './notices.js';
import {renderPath} from './path.js';
import {pngOf, save, svgOf} from './picture.js';
import {Search} from './search.js';
import {BaseBar, SelectionBar, defaultsFor, typeKey} from './selection.js';
import {Stage} from './stage.js';
import {defaultSeconds, formatState, hasPart, isByTime, isCompared, parseState} from './state.js';
import {Timeline} from './timeline.js';
import {Toolbar} from './toolbar.js';

const $ = (id) => document.getElementById(id);
const darkScheme = matchMedia('(prefers-color-scheme: dark)');

class App {
  constructor() {
    Object.assign(this, {
      state: parseState(location.hash), services: 0, profiles: [], attributes: [], versions: [], senders: [], troubles: {}, status: null, overview: null, model: null, moments: null, times: null,
      error: null, loaded: '', answered: '', shown: {from: 0, until: 0, now: 0},
    });
    this.update = this.update.bind(this);
    this.loader = new Loader(this);
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
    this.functions = new Functions(this);
    this.stage = new Stage(this);
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

  // follow shows another state, with the profile that the page chooses where it knows those of the service.
  follow(state) {
    this.state = {...state, ...defaultsFor(state, this.profiles.filter((row) => row.service === state.service))};
    if (this.status) this.shown = this.shownTime(); // at once, so that keys can move it again
    if (dataKey(this.state) !== this.loaded) this.load();
    this.render();
  }

  load() {
    return this.loader.load();
  }

  // isStart reports that no service is chosen, and all are listed.
  get isStart() {
    return !this.state.service;
  }

  // isListed reports whether the attributes, versions and times are those of the state's profile.
  get isListed() {
    return this.listed === namesKey(this.state);
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
    this.stage.render();
    this.functions.render();
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

  // pickService keeps a profile that was chosen, if the service has it.
  pickService(service) {
    this.picked = service;
    this.update({service, attrs: [], group_by: '', zoom: '', node: '', part: null});
  }

  pickType(key) {
    const row = this.profiles.find((candidate) => typeKey(candidate) === key);
    if (row) this.update({profile: row.profile, type: row.type, isAuto: false});
  }

  // setView shows another view. A comparison that has no base yet starts with two values of an attribute, or the two halves of the time,
  // as soon as the page knows those of the profile.
  setView(view, options) {
    const starts = view === 'diff' && !isCompared(this.state);
    this.comparesNext = starts && !this.isListed;
    if (this.comparesNext) return this.update({view}, options);
    const values = starts && firstComparison(this.state, {attributes: this.attributes, versions: this.versions, groups: this.times?.answer.groups ?? []});
    const patch = !starts ? {} : values || halves(this);
    if (patch.base?.time) this.halved = {from: patch.time.from, before: {view: this.state.view, time: this.state.time}, whole: this.shown};
    this.update({view, ...patch}, options);
  }

  compareHalves() {
    const {state} = this;
    const without = {attrs: state.attrs.filter(([key]) => !state.base.attrs.some(([name]) => name === key)), base: {service: '', time: null, attrs: []}};
    const patch = halves(this);
    this.update({...without, ...patch, base: {...without.base, time: patch.base?.time ?? null}});
  }

  swapSides() {
    this.update(swapped(this.state, this.shown));
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
    if (state.view !== 'table' && state.view !== 'sandwich') this.stage.graph.reveal(node);
  }

  // savePicture saves what is drawn of the flame graph as a file.
  async savePicture(kind) {
    const {service, profile} = this.state;
    const {graph} = this.stage;
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
