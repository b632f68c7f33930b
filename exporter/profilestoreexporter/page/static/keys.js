// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// The keyboard shortcuts; messages.js has the list for the user.

import {help} from './messages.js';
import {colors} from './state.js';
import {views} from './toolbar.js';

export function listenToKeys(app) {
  const {selection, toolbar} = app;
  let back = null; // what had the focus before the search
  const actions = {
    '/': () => {
      back = document.activeElement;
      (app.isStart ? app.stage.start.search : toolbar.search).select();
    },
    s: () => selection.service.open(),
    p: () => selection.type.open(),
    f: () => selection.addFilter(),
    g: () => selection.group.open(),
    l: () => app.toggleLive(),
    '[': () => app.shift(-0.5),
    ']': () => app.shift(0.5),
    i: () => app.flip(),
    r: () => app.update({fold: app.state.fold ? '' : 'recursion', zoom: '', node: ''}),
    c: () => app.update({color: colors[(colors.indexOf(app.state.color) + 1) % colors.length]}),
    d: () => toolbar.showDownloads(),
    u: () => toolbar.showLinks(),
    t: () => app.toggleTheme(),
    0: () => app.zoomTo(0),
    Backspace: () => app.zoomOut(),
    F: () => app.focusOn(app.state.fn),
    H: () => app.hideFunction(app.state.fn),
    S: () => app.setView('sandwich'),
    '?': () => help(),
    Escape: () => app.escape(),
  };
  views.forEach(([view], i) => { actions[i + 1] = () => app.setView(view); });
  addEventListener('keydown', (event) => {
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || document.querySelector('dialog[open]')) return;
    if (event.target.matches('input, textarea, select')) {
      if (event.key !== 'Escape') return;
      event.target.blur();
      if ([toolbar.search, app.stage.start.search].includes(event.target)) back?.focus();
      return;
    }
    const action = actions[event.key];
    if (!action || (app.isStart && !'/slt?'.includes(event.key))) return;
    event.preventDefault();
    action();
  });
}
