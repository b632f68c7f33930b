// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// The second line of the page: views, search, how the graph is drawn, downloads, share, theme, help.

import {button, copyField, el, popover} from './dom.js';
import {help} from './messages.js';
import {formatCount, formatShare, formatValue} from './format.js';
import {colors, formatState, profilePath, queryOf} from './state.js';

export const views = [['flame', 'Flame'], ['table', 'Table'], ['both', 'Both'], ['sandwich', 'Sandwich'], ['diff', 'Diff'],
  ['heat', 'Heat map'], ['threads', 'Threads']];

// quote returns a text as one word of a POSIX shell.
export function quote(text) {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replace(/'/g, "'\\''")}'`;
}

// commands returns shell commands that fetch the same data.
export function commands(state, url) {
  const address = (path) => quote(url(path));
  const list = [
    ['go tool pprof', `go tool pprof ${address(profilePath(state))}`],
    ['in a browser', `go tool pprof -http=: ${address(profilePath(state))}`],
  ];
  if (state.profile === 'process_cpu') list.push(['profile-guided optimisation', `curl -o default.pgo ${address(profilePath(state))}`]);
  list.push(['JSON', `curl ${address(`api/flamegraph?${new URLSearchParams(queryOf(state))}`)}`]);
  return list;
}

export class Toolbar {
  constructor(host, app) {
    this.app = app;
    this.tabs = views.map(([view, label], i) => button(label, () => app.setView(view), {'data-view': view, title: `${label} (${i + 1})`}));
    const search = () => app.update({q: this.search.value}, {replace: true});
    this.search = el('input', {
      type: 'search', id: 'search', placeholder: 'search functions', 'aria-label': 'Search functions', spellcheck: 'false', autocomplete: 'off',
      title: 'A part of the name, or /a regular expression/ (press / to come here); Enter goes to the next match', oninput: search, onsearch: search,
      onkeydown: (event) => event.key === 'Enter' && app.nextMatch(event.shiftKey ? -1 : 1),
    });
    this.found = el('output', {id: 'found'});
    this.matches = el('span', {class: 'matches', hidden: true}, button('‹', () => app.nextMatch(-1), {'aria-label': 'Previous match', title: 'Previous match (Shift Enter)'}),
      this.found, button('›', () => app.nextMatch(1), {'aria-label': 'Next match', title: 'Next match (Enter)'}));
    this.rate = el('output', {class: 'rate', id: 'rate', title: 'in each second of the shown time that has profiles'});
    this.sum = el('output', {class: 'sum', id: 'sum'});
    this.direction = button('', () => app.flip(), {class: 'quiet'});
    this.color = el('select', {'aria-label': 'Colour by', title: 'Colour by (c)', onchange: () => app.update({color: this.color.value})},
      colors.map((color) => el('option', {value: color}, `colour: ${color}`)));
    this.download = button('pprof ↓', () => this.showDownloads(), {'aria-haspopup': 'dialog', title: 'Downloads and commands (d)'});
    this.share = button('share', () => this.showLinks(), {'aria-haspopup': 'dialog', title: 'Links to what is shown (u)'});
    this.theme = button('☾', () => app.toggleTheme(), {'aria-label': 'Light or dark', title: 'Light or dark (t)', class: 'quiet'});
    for (const element of [this.search, this.matches, this.rate, this.sum, this.direction, this.color, this.download]) element.classList.add('ofservice');
    host.append(el('span', {class: 'tabs ofservice'}, this.tabs), this.search, this.matches, this.rate, this.sum, el('span', {class: 'space'}),
      this.direction, this.color, this.download, this.share, this.theme,
      button('?', help, {'aria-label': 'Keys', title: 'Keys (?)', class: 'quiet'}));
  }

  render({total, unit, found, rate}) {
    const {state, theme} = this.app;
    for (const tab of this.tabs) {
      tab.setAttribute('aria-pressed', String(tab.dataset.view === state.view));
      tab.hidden = tab.dataset.view !== state.view && !this.app.offers(tab.dataset.view);
    }
    if (this.search.value !== state.q) this.search.value = state.q;
    const {model} = this.app;
    this.matches.hidden = !(state.q && found?.matched && model?.matches.length);
    if (!this.matches.hidden) {
      const at = model.matches.indexOf(model.node);
      this.found.textContent = `${at >= 0 ? `${(at + 1).toLocaleString('en-US')} of ` : ''}${model.matches.length.toLocaleString('en-US')}`;
    }
    const whole = formatValue(total, unit);
    this.rate.textContent = state.view === 'diff' || (state.q && found) ? '' : rate;
    this.sum.textContent = total === null || (state.view === 'diff' && !state.q) ? '' : state.q && found ? found.note || `${formatShare(found.total, total)} of ${whole}` : whole;
    this.sum.title = state.q && found ? `${formatValue(found.total, unit)} pass through ${formatCount(found.functions, 'function')} found` : 'the total of what is shown';
    const up = state.direction === 'flame';
    this.direction.textContent = up ? '▲ flame' : '▼ icicle';
    this.direction.title = 'The root below or above (i)';
    this.color.value = state.color;
    this.color.hidden = ['diff', 'table', 'threads'].includes(state.view);
    this.direction.hidden = ['table', 'sandwich', 'threads'].includes(state.view);
    this.theme.textContent = theme.dark ? '☀' : '☾';
  }

  showDownloads() {
    const {state, url} = this.app;
    const links = [['pprof', '', '.pb.gz'], ['collapsed stacks', '.collapsed', '.collapsed.txt'], ['speedscope', '.speedscope.json', '.speedscope.json']];
    popover(this.download, el('div', {class: 'sheet'},
      el('p', {}, 'What is selected, as a file:'),
      el('p', {class: 'choices'}, links.map(([label, suffix, ending]) => el('a', {
        class: 'button', href: profilePath(state, suffix), download: `${state.service}-${state.profile}${ending}`.replace(/[^\w.-]+/g, '_').slice(-120),
      }, `${label} ↓`))),
      el('p', {}, 'What is drawn, as a picture:'),
      el('p', {class: 'choices'}, button('SVG ↓', () => this.app.savePicture('svg')), button('PNG ↓', () => this.app.savePicture('png'))),
      commands(state, url).map(([label, text]) => copyField(label, text))), {label: 'Downloads and commands'});
  }

  showLinks() {
    const {state, shown} = this.app;
    const here = location.href.replace(/#.*/, '');
    const link = (time) => `${here}#${formatState({...state, isAuto: false, time})}`;
    const fixed = {from: Math.round(shown.from), until: Math.round(shown.until)};
    popover(this.share, el('div', {class: 'sheet'},
      copyField('exactly this time', link(fixed)),
      state.time.from ? null : copyField('live', link(state.time)),
      el('p', {class: 'faint'}, 'All state is in the link. It works as long as the collector keeps the data; a downloaded pprof stays.')), {label: 'Share'});
  }
}
