// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

import assert from 'node:assert/strict';
import {test} from 'node:test';
import * as s from '../static/state.js';
import {commands, quote, views} from '../static/toolbar.js';

const full = () => ({
  ...s.emptyState(), service: 'shop & co', profile: 'process_cpu', type: 'cpu/nanoseconds', group_by: 'region', view: 'diff', direction: 'flame',
  color: 'module', q: '/^a#b/', fn: 'main.f /a b.go', node: '0123456789abcdef', zoom: 'fedcba9876543210', focus: 'x', sort: '-total',
  norm: 'rate', palette: 'orange-blue', theme: 'dark', fold: 'recursion', find: 'sh', by: 'memory', open: 'cart', most: '60', isAuto: false, time: {from: 1000, until: 2000}, attrs: [['k.a', 'v=1&2'], ['thread', '']], hide: ['a', 'b'],
  base: {service: 'other', time: {from: 1, until: 2}, attrs: [['region', 'us']]},
});

test('a state comes back from its URL', () => {
  const state = full();
  assert.deepEqual(s.parseState(`#${s.formatState(state)}`), state);
  assert.equal(s.formatState(s.emptyState()), '');
  assert.deepEqual(s.parseState(''), s.emptyState());
  for (const time of [{}, {seconds: 60}, {seconds: s.defaultSeconds}]) {
    assert.deepEqual(s.parseState(s.formatState({...s.emptyState(), time})).time, time);
  }
});

test('a profile that the page has chosen is not in the URL', () => {
  const state = {...s.emptyState(), service: 'shop', profile: 'block', type: 'delay/nanoseconds'};
  assert.equal(s.formatState(state), 'service=shop');
  assert.equal(s.formatState({...state, isAuto: false}), 'service=shop&profile=block&type=delay/nanoseconds');
  assert.equal(s.parseState('#service=shop').isAuto, true);
  assert.equal(s.parseState('#service=shop&profile=block').isAuto, false);
});

test('a view and colours that there are not are the default', () => {
  const {view, color, palette} = s.parseState('#view=icicles&color=red&palette=');
  assert.deepEqual({view, color, palette}, {view: 'flame', color: 'package', palette: 'red-green'});
  for (const [view] of views) assert.equal(s.parseState(`#view=${view}`).view, view);
});

test('a URL that nobody made is read as far as it makes sense', () => {
  for (const hash of ['#%E0%A4%A', '#from=9&until=3', '#seconds=-5', '#seconds=x', '#from=1e20&until=1e21', '#seconds=1e99', '#attr.=v', '#__proto__=1&constructor=2', `#q=${'x'.repeat(1e5)}`]) {
    const state = s.parseState(hash);
    assert.deepEqual(state.time, {seconds: s.defaultSeconds}, hash);
    assert.deepEqual(state.attrs, [], hash);
  }
});

test('queries for the API', () => {
  const query = new URLSearchParams([...s.queryOf(full()), ...s.baseQueryOf(full())]).toString();
  assert.equal(query, 'service=shop+%26+co&profile=process_cpu&type=cpu%2Fnanoseconds&from=1000&until=2000&attr.k.a=v%3D1%262&attr.thread=&' +
    'base.attr.region=us&base.service=other&base.from=1&base.until=2');
  assert.equal(s.profilePath({...s.emptyState(), service: 'a b', profile: 'p', attrs: [['k', 'v']]}, '.collapsed'), 'profiles/a%20b/p.collapsed?seconds=900&attr.k=v');
  const part = {...s.emptyState(), view: 'heat', service: 'a', profile: 'p', type: 'cpu/nanoseconds', part: {from: 1000.25, until: 2000}};
  assert.equal(s.profilePath(part), 'profiles/a/p?from=1000.25&until=2000');
  for (const service of ['.', '..', 'a/b', 'a%2Fb', 'a\\b']) {
    const path = s.profilePath({...part, service}, '.collapsed');
    assert.equal(new URL(path, 'http://localhost/').pathname, '/profiles');
    assert.equal(path, `profiles?service=${encodeURIComponent(service)}&profile=p.collapsed&type=cpu%2Fnanoseconds&from=1000.25&until=2000`);
  }
  assert.equal(s.profilePath(part, '.speedscope.json'), 'profiles/a/p.speedscope.json?type=cpu%2Fnanoseconds&from=1000.25&until=2000');
  assert.deepEqual(s.withAttribute([['a', '1'], ['b', '2']], 'a', '3'), [['b', '2'], ['a', '3']]);
  assert.deepEqual(s.withAttribute([['a', '1']], 'a', null), []);
});

test('commands are safe to paste', () => {
  assert.equal(quote("a'b"), "'a'\\''b'");
  assert.equal(quote('http://h/x?a=b'), "'http://h/x?a=b'");
  const state = {...s.emptyState(), service: "x'; rm -rf $HOME #", profile: 'process_cpu'};
  for (const [, command] of commands(state, (path) => `http://h/${path}`)) assert.doesNotMatch(command.replace(/'\\''/g, '').replace(/'[^']*'/g, ''), /;|\$/);
});
