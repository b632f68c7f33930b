// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// When the page loads, how long it waits, and what it shows meanwhile.

import {progressOf} from './api.js';
import {button, el} from './dom.js';
import {dataKey, loadAll, loadFindings} from './load.js';

const $ = (id) => document.getElementById(id);

// Loader loads what the state of the page selects, one at a time.
export class Loader {
  constructor(app) {
    this.app = app;
  }

  // load requests everything that the state selects. While the page is live, or the collector does not respond or has a fault, it
  // repeats that. After an error, an earlier answer to the same request stays; one to another would stand under a wrong heading.
  async load() {
    clearTimeout(this.timer);
    this.loading?.abort();
    this.loading = new AbortController();
    this.app.loadName = crypto.randomUUID?.() ?? `${performance.now()}-${Math.random()}`; // randomUUID is for https and localhost
    $('progress').hidden = true;
    const {signal} = this.loading;
    this.app.loaded = dataKey(this.app.state);
    this.setLoading(true);
    this.watch(signal);
    let error = null;
    try {
      if (!(await loadAll(this.app, signal))) return;
    } catch (failure) {
      error = failure;
      if (signal.aborted) return;
      if (!(failure instanceof Error) || failure.status === undefined) console.error(failure);
    }
    this.setLoading(false);
    this.app.error = error;
    if (!error) this.app.answered = this.app.loaded;
    else if (this.app.answered !== this.app.loaded) Object.assign(this.app, {model: null, moments: null, times: null});
    const resolution = this.app.status?.resolution_ms ?? 10_000;
    const again = error ? 5000 : this.app.isStart ? 15_000 : Math.min(10_000, Math.max(1000, resolution / 2));
    if ((error?.isTemporary || !this.app.state.time.from || !this.app.services) && !document.hidden) this.timer = setTimeout(() => this.load(), again);
    if (!error && this.app.comparesNext) return this.app.setView(this.app.state.view, {replace: true});
    this.app.render(); // last: whatever it cannot draw, the next answer may be fine
    if (!error) loadFindings(this.app);
  }

  // watch shows how far a load is that takes longer than a second, and a way to end it.
  async watch(signal) {
    const wait = (ms) => new Promise((resolve) => { setTimeout(resolve, ms); });
    const isOver = () => signal.aborted || this.loading?.signal !== signal || !document.body.classList.contains('loading');
    for (await wait(1000); !isOver(); await wait(500)) {
      const {blocks = 0, blocks_read: read = 0} = (await progressOf(this.app.loadName)) ?? {};
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
    this.app.error = Object.assign(new Error('The query was cancelled.'), {hint: 'Choose a shorter time, or load again.', status: 499});
    if (this.app.answered !== this.app.loaded) Object.assign(this.app, {model: null, moments: null, times: null});
    this.app.render();
  }

  setLoading(loading) {
    if (!loading) $('progress').hidden = true;
    document.body.classList.toggle('loading', loading);
    $('main').setAttribute('aria-busy', String(loading));
  }
}
