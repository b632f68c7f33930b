// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

import assert from 'node:assert/strict';
import {test} from 'node:test';
import {changeColor, moduleOf, packageOf, shortName, themes} from '../static/colors.js';
import {Scale} from '../static/compare.js';
import {fit} from '../static/paint.js';
import {filterOptions} from '../static/picker.js';
import {attributeOptions, defaultsFor, typedAttribute} from '../static/selection.js';
import {linePath} from '../static/overview.js';
import {columnsFor, order} from '../static/table.js';
import {bands, ticks} from '../static/timeline.js';

test('packages and modules of many languages', () => {
  for (const [name, file, want] of [
    ['net/http.(*conn).serve', '', 'net/http'], ['runtime.mallocgc', '', 'runtime'], ['main.main.func1', '', 'main'],
    ['github.com/a/b/cart.Map[go.shape.string,net/http.X].Get', '', 'github.com/a/b/cart'], ['example.com/shop.run', '', 'example.com/shop'], ['java.util.HashMap.put', '', 'java.util'],
    ['std::vec::Vec<T>::push', '', 'std::vec'], ['ns::f(int, std::string)', '', 'ns'], ['handle', '/app/node_modules/@x/y/lib/i.js', '@x/y'],
    ['do_work', '/srv/app/work.py', '/srv/app'], ['memcpy', '', 'libc.so.6'], ['', '', 'libc.so.6'],
  ]) assert.equal(packageOf(name, file, '/usr/lib/libc.so.6'), want, name);
  assert.equal(moduleOf('github.com/a/b/cart.F', '/a/b.go', '/bin/x'), 'github.com/a/b');
  assert.equal(moduleOf('net/http.F', '/go/src/net/http/x.go', '/bin/x'), 'standard library');
  assert.equal(moduleOf('memcpy', '', '/usr/lib/libc.so.6'), 'libc.so.6');
  assert.ok(packageOf('N'.repeat(1 << 20)).length <= 1000);
});

test('labels are cut to what fits', () => {
  assert.equal(shortName('net/http.(*conn).serve'), 'http.(*conn).serve');
  assert.equal(fit('net/http.(*conn).serve', 30), 'net/http.(*conn).serve');
  assert.equal(fit('net/http.(*conn).serve', 19), 'http.(*conn).serve');
  assert.equal(fit('net/http.(*conn).serve', 6), 'http.…');
});

test('more and less differ in lightness, not in hue alone', () => {
  for (const theme of Object.values(themes)) {
    for (const palette of ['red-green', 'orange-blue']) {
      const lightness = (change) => Number(/oklch\(([\d.]+)/.exec(changeColor(change, palette, theme))[1]);
      assert.ok(Math.abs(lightness(1) - lightness(-1)) >= 0.08, palette);
    }
  }
});

test('lists filter by all words, those that start with the first come first', () => {
  const options = ['worker pool', 'pool worker', 'cart'].map((label) => ({label, value: label}));
  assert.deepEqual(filterOptions(options, 'POOL work').map(({label}) => label), ['pool worker', 'worker pool']);
  assert.equal(filterOptions(options, '').length, 3);
  assert.deepEqual(typedAttribute('a.b = c=d').value, ['a.b', 'c=d']);
  assert.equal(typedAttribute('nothing'), null);
  assert.equal(attributeOptions([{key: 'k', scope: 'sample', values: [{value: 'v', samples: 1234}]}])[0].detail, '1,234 samples · of samples');
  assert.equal(attributeOptions([{key: 'k', scope: 'profile', values: [{value: 'v', samples: 1}]}])[0].detail, '1 sample · of profiles');
});

test('what is shown first of a service: its CPU profile, the default type', () => {
  const row = (profile, type, isDefault, samples = 1) => ({service: 'new', profile, type, default: isDefault, samples});
  const rows = [row('block', 'delay/nanoseconds', true), row('memory', 'inuse_space/bytes', true), row('process_cpu', 'samples/count', false), row('process_cpu', 'cpu/nanoseconds', true)];
  const none = {service: 'new', profile: '', type: ''};
  assert.deepEqual(defaultsFor(none, rows), {service: 'new', profile: 'process_cpu', type: 'cpu/nanoseconds'});
  assert.deepEqual(defaultsFor({...none, profile: 'memory'}, rows), {service: 'new', profile: 'memory', type: 'inuse_space/bytes'});
  assert.deepEqual(defaultsFor({...none, service: 'gone', profile: 'p'}, []), {service: 'gone', profile: 'p', type: ''});
  assert.deepEqual(defaultsFor({...none, service: ''}, []), {...none, service: ''});
  const idle = [row('process_cpu', 'cpu/nanoseconds', true, 0), row('memory', 'inuse_space/bytes', true)];
  assert.equal(defaultsFor(none, idle).profile, 'memory');
  assert.equal(defaultsFor(none, idle.slice(0, 1)).profile, 'process_cpu');
});

test('a small time line is as high as its largest value, with gaps', () => {
  assert.equal(linePath([1, null, 2, 0.5], 40, 20), 'M0 20V10H10V20zM20 20V0H30V15H40V20z');
  assert.equal(linePath([0, null], 40, 20), '');
});

test('the table sorts by value, change by its size, names by name', () => {
  const rows = {self: [1, 5, 3], total: [9, 5, 3], baseSelf: [1, 1, 9], baseTotal: [9, 1, 9], present: [1, 1, 1]};
  const frames = {functionName: (id) => ['b', 'a', 'c'][id]};
  const plain = columnsFor({compared: false, unit: 'count', total: 9})(rows);
  assert.deepEqual(order([0, 1, 2], frames, plain, 'self'), [1, 2, 0]);
  assert.deepEqual(order([0, 1, 2], frames, plain, '-total'), [2, 1, 0]);
  assert.deepEqual(order([0, 1, 2], frames, plain, 'name'), [1, 0, 2]);
  const compared = columnsFor({compared: true, unit: 'count', total: 9, baseTotal: 9, scale: new Scale({norm: 'share', kind: 'delta', unit: 'count', shown: {from: 0, until: 1}})})(rows);
  assert.deepEqual(order([0, 1, 2], frames, compared, 'change_self'), [2, 1, 0]);
  assert.deepEqual(compared.at(-1).cells(1), ['+44.4 pp', '+400 %']);
});

test('of two functions of which one gains the share that the other loses, the one that grew is first', () => {
  const scale = new Scale({norm: 'share', kind: 'delta', unit: 'count', shown: {from: 0, until: 1}});
  for (let i = 1; i < 200; i++) {
    const [total, baseTotal] = [55e7 + i * 7919, 30e7 + i * 104729];
    const [grown, baseGrown] = [35e7 + i * 31, 10e7 + i * 17];
    const sides = {self: [grown, total - grown], baseSelf: [baseGrown, baseTotal - baseGrown]};
    for (const ids of [[0, 1], [1, 0]]) {
      const of = (values) => ids.map((id) => values[id]);
      const [self, baseSelf] = [of(sides.self), of(sides.baseSelf)];
      const rows = {self, total: self, baseSelf, baseTotal: baseSelf, present: [1, 1]};
      const columns = columnsFor({compared: true, unit: 'count', total, baseTotal, scale})(rows);
      assert.deepEqual(order([0, 1], {}, columns, 'change_self'), ids, `${i}`);
      assert.deepEqual(order([0, 1], {}, columns, '-change_self'), [...ids].reverse(), `${i}, reversed`);
    }
  }
});

test('groups are stacked, gaps stay gaps, ticks are round', () => {
  assert.deepEqual(bands([{values: [1, null, 2]}, {values: [3, null, null]}]), [[1, null, 2], [4, null, 2]]);
  assert.deepEqual(bands([]), []);
  const found = ticks(Date.UTC(2026, 0, 1, 12, 0, 3), Date.UTC(2026, 0, 1, 12, 59, 0), 8);
  assert.ok(found.length >= 3 && found.length <= 9);
  for (const t of found) assert.equal(t % 60e3, 0);
});

test('days begin at midnight where summer time begins or ends', () => {
  const before = process.env.TZ;
  process.env.TZ = 'Europe/Berlin';
  for (const [month, day] of [[2, 26], [9, 22]]) { // the changes are on March 29 and October 25, 2026
    const found = ticks(new Date(2026, month, day, 12).getTime(), new Date(2026, month, day + 5, 12).getTime(), 6);
    assert.deepEqual(found.map((t) => new Date(t).getHours()), [0, 0, 0, 0, 0], `month ${month}`);
  }
  if (before === undefined) delete process.env.TZ;
  else process.env.TZ = before;
});
