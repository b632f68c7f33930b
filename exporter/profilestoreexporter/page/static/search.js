// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// The search: which names match a query, a part of the name in any case or /a regular expression/.

// patience is how long a regular expression may take for all names, in milliseconds.
const patience = 2000;

// Search matches names. An expression such as (a+)+b can take longer for one name than anyone waits, and only the end of its thread
// stops it: a worker matches, and is ended when its time is up.
export class Search {
  // onchange is called when an expression has matched, or will not.
  constructor(onchange) {
    Object.assign(this, {onchange, query: '', names: null, note: '', matches: null, version: 0});
  }

  // find sets matches, a predicate on names, or null without a query and while there is no result; note then says why. The result for
  // earlier names stays until that for new ones is there. version changes with each result.
  find(query, names) {
    const isNew = query !== this.query;
    if (!isNew && (names === this.names || this.isRefused)) return;
    this.stop();
    Object.assign(this, {query, names, isRefused: false});
    const [, source] = /^\/(.+?)\/?$/.exec(query) ?? [];
    if (source === undefined) {
      const part = query.toLowerCase();
      this.set(query && ((name) => name.toLowerCase().includes(part)));
      return;
    }
    if (isNew) this.set(null, 'searching …');
    const end = (found, note) => {
      this.stop();
      this.isRefused = !found;
      this.set(found && ((name) => found.has(name)), note);
      this.onchange();
    };
    this.worker = new Worker(new URL('match.js', import.meta.url));
    this.worker.onmessage = ({data}) => end(new Set(data));
    this.worker.onerror = () => end(null, 'not a regular expression');
    this.worker.postMessage({source, names});
    this.timer = setTimeout(() => end(null, 'this expression takes too long'), patience);
  }

  set(matches, note = '') {
    Object.assign(this, {matches: matches || null, note, version: this.version + 1});
  }

  stop() {
    clearTimeout(this.timer);
    this.worker?.terminate();
    this.worker = null;
  }
}
