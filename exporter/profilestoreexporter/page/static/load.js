// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// What the page asks for at each load, and what it chooses where the URL does not.

import {ask} from './api.js';
import {Model} from './model.js';
import {defaultsFor, typeKey} from './selection.js';
import {baseQueryOf, isCompared, queryOf, timeQuery} from './state.js';

// overviewQuery returns the parameters of the list of all services.
const overviewQuery = ({time, find, by, most}) => [...timeQuery(time), ['sort', by], ['limit', most], ...(find ? [['search', find]] : [])];

// dataKey changes with what must be loaded again; everything else in a state only changes how it is shown.
export const dataKey = (state) => JSON.stringify(state.service ? [queryOf(state), timeQuery(state.time), state.group_by,
  {diff: baseQueryOf(state), heat: 'heat', threads: 'threads'}[state.view] ?? null] : ['overview', overviewQuery(state), state.open]);

// namesKey names the profile of a state.
export const namesKey = (state) => JSON.stringify([state.service, typeKey(state)]);

export const maxEvents = 20_000;

// loadAll returns false, and has changed nothing since, if a later load has aborted this one.
export async function loadAll(app, signal) {
  const get = (endpoint, query) => ask(endpoint, query, signal, app.loadName);
  const page = await get('page', app.state.service ? [['service', app.state.service]] : []);
  if (signal.aborted) return false;
  Object.assign(app, {status: page.status, services: page.services, profiles: page.profiles, senders: page.senders, troubles: page.troubles, sourceTemplate: page.source_link});
  choose(app, page.service);
  const {state} = app;
  app.row = app.profiles.find((row) => row.service === state.service && typeKey(row) === typeKey(state));
  app.shown = app.shownTime();
  if (!app.row) Object.assign(app, {model: null, moments: null, times: null, attributes: []});
  if (app.isStart && app.services) {
    const [overview, types] = await Promise.all([get('overview', overviewQuery(state)), state.open ? get('types', [['service', state.open], ...timeQuery(state.time)]) : null]);
    if (signal.aborted) return false;
    Object.assign(app, {overview, types});
  }
  if (!app.row) return true;
  const query = queryOf(state);
  const group = state.group_by ? [['group_by', state.group_by]] : [];
  const extent = app.extent();
  const compared = state.view === 'diff' && isCompared(state);
  const names = [['service', state.service], ['profile', state.profile], ['type', state.type]];
  // Both values that are compared are on the time line.
  const by = app.groupKey;
  const others = [...names, ...state.attrs.filter(([key]) => !compared || key !== by).map(([key, value]) => [`attr.${key}`, value]), ...(by ? [['group_by', by]] : [])];
  const points = Math.max(60, Math.min(600, Math.floor(innerWidth / 3)));
  const columns = Math.max(60, Math.min(1200, innerWidth - 60)); // one for each pixel
  const whole = queryOf({...state, part: null});
  const [times, attributes, versions, answer, moments] = await Promise.all([
    get('timeline', [...others, ...timeQuery(extent), ['points', points]]),
    get('attributes', [...names, ...timeQuery(compared && state.base.time ? app.bothTimes() : state.time)]),
    versionsOf(app, names, get),
    state.view === 'threads' ? {} : compared ? get('diff', [...query, ...baseQueryOf(state)]) : get('flamegraph', [...query, ...group]),
    state.view === 'heat' ? get('heatmap', [...whole, ['columns', columns]])
      : state.view === 'threads' ? get('events', [...query.filter(([name]) => name !== 'profile' && name !== 'type'), ...group, ['limit', maxEvents]]) : {},
  ]);
  if (signal.aborted) return false;
  app.moments = {view: state.view, answer: moments};
  Object.assign(app, {listed: namesKey(state), times: {answer: times, extent}, // The service has a list of its own.
    attributes: attributes.attributes.filter(({key}) => key !== 'service.name'), versions: versions.versions});
  if (state.view === 'threads') app.model = null; // it has no flame graph
  else if (app.model?.answer !== answer) {
    if (!performance.getEntriesByName('page-paint').length) performance.mark('page-answer');
    app.model = new Model(answer, query);
  }
  return true;
}

// versionsOf returns the versions of a profile, which it asks for twice a minute: all blocks on disk have some.
async function versionsOf(app, names, get) {
  const key = JSON.stringify([names, Math.floor(app.status.now / 30e3)]);
  if (app.known?.key !== key) {
    const answer = await get('versions', names);
    if (answer) app.known = {key, answer};
    return answer;
  }
  return app.known.answer;
}

// choose sets the service if there is only one, and the profile that the page chooses.
function choose(app, service) {
  const {state} = app;
  const isMissing = app.picked === service && !app.profiles.some((row) => typeKey(row) === typeKey(state));
  app.picked = null;
  const isAuto = state.isAuto || isMissing;
  const names = {...state, service: state.service || service, ...(isAuto ? {profile: '', type: ''} : {})};
  const chosen = {...defaultsFor(names, app.profiles), isAuto};
  if (['service', 'profile', 'type', 'isAuto'].every((name) => chosen[name] === state[name])) return;
  app.state = {...state, ...chosen};
  app.loaded = dataKey(app.state);
  app.write(app.state, true);
}

// loadFindings asks what stands out in the service, of a live page once a minute and about an hour at least. It takes longer than the
// page, which does not wait for it.
export async function loadFindings(app) {
  const {state, status} = app;
  if (!status || app.isStart) return;
  const {time} = state;
  const query = [['service', state.service], ...timeQuery(time.from ? time : {seconds: Math.max(3600, time.seconds ?? 3600)})];
  const key = JSON.stringify([query, time.from ? 0 : Math.floor(status.now / 60e3)]);
  if (app.findingsKey === key) return;
  if (app.findings?.service !== state.service) app.findings = null;
  app.findingsKey = key;
  try {
    const answer = await ask('findings', query, undefined, 'findings');
    if (app.findingsKey !== key) return;
    app.findings = {service: state.service, list: answer.findings};
  } catch {
    return; // the page has more to say about a collector that does not answer
  }
  app.render();
}
