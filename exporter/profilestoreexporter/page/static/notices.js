// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// The lines above the graph, and what is shown in place of a graph if there is nothing to draw.

import {versionKey} from './compare.js';
import {button, el, popover, refill} from './dom.js';
import {clean, formatDuration, formatTime, isTime} from './format.js';
import {maxEvents} from './load.js';
import {leftOut, refusedLine, rich, senderList, troubleNotices, ui} from './messages.js';
import {defaultSeconds, emptyState, hasPart, isCompared} from './state.js';

export function renderNotices(app) {
  const notices = [];
  const {error, row, model, state} = app;
  if (error && (app.isAnswered || (app.isStart && app.overview))) notices.push([`${error.message} ${error.hint ?? ''}`, 'error', ...(error.status === 499 ? [['load again', () => app.load()]] : [])]);
  if (app.status) notices.push(...troubleNotices(app.troubles, app.status).map((text) => [text, 'error']));
  const refused = app.isStart && app.services ? refusedLine(app.senders) : '';
  if (refused) notices.push([refused, null, ['who?', (event) => popover(event.target, el('div', {class: 'sheet wide'}, senderList(app.senders, app.status.now)), {label: 'Senders'})]]);
  if (row?.rearranged) notices.push([row.rearranged === 1 ? 'One profile was captured outside the window: it is kept under the time of its arrival.'
    : `${row.rearranged.toLocaleString('en-US')} profiles were captured outside the window: they are kept under the time of their arrival.`]);
  if (app.status?.coarse_step_ms && app.shown?.from < app.status.coarse_until) {
    notices.push([`Until ${formatTime(app.status.coarse_until)}, profiles are kept by steps of ${formatDuration(app.status.coarse_step_ms)}, without timestamps.`]);
  }
  const cut = model?.answer.truncated;
  const moments = app.moments?.view === state.view ? app.moments.answer : {};
  notices.push(...leftOut(moments, maxEvents).map((text) => [text]));
  if (moments.cut) notices.push(['The heat map shows the last hour of the selected time.']);
  // The heat map spreads a duration; a sample of the graph belongs to the moment at which it ended.
  if (model && state.view === 'heat' && hasPart(state) && isTime(model.unit)) notices.push(['The graph has what ended in this part, with its whole duration.']);
  if (model?.answer.pruned) notices.push(['The graph has fewer nodes than there are, since all of them need more memory than a query may take: the smallest are not drawn; their values are in those above them.']);
  else if (cut) notices.push([`The graph has room for 100,000 nodes: the ${cut.toLocaleString('en-US')} smallest are not drawn; their values are in those above them.`]);
  if (model?.compared && !model.isEmpty && !(model.total && model.baseTotal)) {
    const whole = () => app.update({time: {}, base: {...state.base, time: null}});
    notices.push([`${model.total ? 'The base has' : 'What is shown has'} no samples: choose another time with ${model.total ? 'Shift and drag' : 'a drag'} in the time line.`, null,
      ...(state.base.attrs.length || state.base.service ? [['compare in the whole time', whole]] : [])]);
  }
  if (model && !state.fold && model.depth > 200 && model.isRecursive) {
    notices.push([`The stacks are up to ${model.depth.toLocaleString('en-US')} frames deep, with recursion.`, null, ['collapse recursion', () => app.update({fold: 'recursion', zoom: '', node: ''})]]);
  }
  if (model && state.focus && !model.frames.find(state.focus).size) notices.push(['The focused function has no samples here, so all are shown.']);
  if (state.view === 'diff' && model && !isCompared(state) && !app.comparesNext) notices.push(['Nothing is compared yet: choose a base below.', null, ['compare', () => app.setView('diff')]]);
  if (state.view === 'diff' && state.time.from && state.base.time) notices.push(paused(app));
  if (model?.compared && state.base.attrs.length && !state.base.time && app.groupKey === versionKey) {
    notices.push([`Two versions are compared${model.scale.byShare ? ', each by its share of the total' : ''}.`, null, ['compare two times', () => app.compareHalves()]]);
  }
  refill(document.getElementById('notices'), notices, () => notices.map(([text, kind, ...buttons]) =>
    el('p', {class: kind ?? null, role: kind ? 'alert' : null}, rich(clean(text, 800)), buttons.map((b) => [' ', button(...b)]))));
}

// paused returns a notice that two fixed times are compared, with a way back.
function paused(app) {
  const back = () => {
    const base = {...app.state.base, time: null};
    app.update({view: isCompared({base}) ? 'diff' : 'flame', time: app.liveTime ?? {seconds: defaultSeconds}, ...app.beforeHalves, base});
  };
  return app.beforeHalves ? ['The page is paused: it shows the later half of the time, compared with the earlier half. Drag in the time line for another time, with Shift for another base.', null, ['back to the whole time', back], ...earlier(app)]
    : ['The page is paused: it compares two fixed times.', null, ['follow what comes in', back]];
}

// earlier returns buttons that compare the whole time with that of a day or a week before, as far as the store reaches.
function earlier(app) {
  const day = 86400e3;
  const compare = (by) => {
    const [from, until] = [Math.round(app.halved.whole.from), Math.round(app.halved.whole.until)];
    app.update({time: {from, until}, base: {...app.state.base, time: {from: from - by, until: until - by}}});
  };
  return [['compare with a day earlier', day], ['compare with a week earlier', 7 * day]].filter(([, by]) => app.status?.window_ms > by)
    .map(([label, by]) => [label, () => compare(by)]);
}

// problemOf returns what is shown instead of the graph if there is nothing to draw.
export function problemOf(app) {
  const {state, model, error, profiles, status} = app;
  const all = ['show the whole window', () => app.update({time: {}, attrs: []})];
  const other = ['all services', () => app.update({...emptyState(), theme: state.theme})];
  if (error && app.isStart && app.overview) return null;
  if (error?.status === 499 && !app.isAnswered) return ui.cancelled({error, actions: [['load again', () => app.load()]]});
  if (error && !app.isAnswered) return ui.broken(error);
  if (!status) return el('div', {class: 'message', role: 'status'}, el('p', {class: 'faint'}, 'Asking the collector …'));
  if (!app.services) return ui.noData({window: status.window_ms, senders: app.senders, now: status.now});
  if (app.isStart) return app.overview ? null : el('div', {class: 'message', role: 'status'}, el('p', {class: 'faint'}, 'Adding up what the services cost …'));
  if (!app.row) {
    const {senders} = app;
    const {now} = status;
    const served = profiles.length > 0;
    return ui.unknown(served ? {what: 'The profile', name: [state.profile, state.type].filter(Boolean).join(' '), senders, now, actions: [['choose a profile', () => app.selection.type.open()]]}
      : {what: 'The service', name: state.service, senders, now, actions: [other]});
  }
  if (!app.offers(state.view)) return ui.noTimes({actions: [['show the flame graph', () => app.setView('flame')]]});
  if (!app.isAnswered) return el('div', {class: 'message', role: 'status'}, el('p', {class: 'faint'}, 'Loading …'));
  if (app.hasMoments || (model && !model.isEmpty && state.view !== 'heat')) return null;
  return ui.nothingHere({state, ...app.shown, known: app.row, actions: [all, ...(state.attrs.length ? [['without the filters', () => app.update({attrs: []})]] : []), other]});
}
