// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

import assert from 'node:assert/strict';
import {test} from 'node:test';
import {choices, firstComparison, marks, Scale, sides, sinceVersion, withSide} from '../static/compare.js';
import {emptyState} from '../static/state.js';

const attribute = (key, ...values) => ({key, values: values.map((value) => ({value, samples: 1}))});
const attributes = [attribute('region', 'eu', 'us'), attribute('host', 'a'), attribute('service.version', '1.10', '1.9', '1.11')];
const versions = [{value: '1.9', from: 100, until: 500}, {value: '1.10', from: 300, until: 600}, {value: '1.11', from: 400, until: 900}];
const state = (patch) => ({...emptyState(), service: 'shop', ...patch});
const applied = (patch, before = state()) => ({...before, ...patch});

test('attributes with several values are offered, versions first and in the order of their appearance', () => {
  assert.deepEqual(choices(attributes, versions), [{key: 'service.version', values: ['1.9', '1.10', '1.11']}, {key: 'region', values: ['eu', 'us']}]);
  assert.deepEqual(choices([], []), []);
  assert.deepEqual(choices([{...attribute('bytes', '64', '1024'), scope: 'sample'}, {...attribute('shard', '1', '2'), scope: 'resource'}], []), [{key: 'shard', values: ['1', '2']}]);
});

test('a comparison starts with the last two versions, the filter and another, or the two largest groups', () => {
  const start = (patch, groups = []) => firstComparison(state(patch), {attributes, versions, groups});
  assert.deepEqual(sides(applied(start()), 'service.version'), {base: '1.10', value: '1.11'});
  assert.deepEqual(sides(applied(start({attrs: [['service.version', '1.10']]})), 'service.version'), {base: '1.9', value: '1.10'});
  assert.deepEqual(sides(applied(start({attrs: [['service.version', '1.9']]})), 'service.version'), {base: '1.10', value: '1.9'});
  assert.deepEqual(sides(applied(start({attrs: [['region', 'us']]})), 'region'), {base: 'eu', value: 'us'});
  const groups = [{name: '(none)', values: [99]}, {name: 'new', values: [null, 9]}, {name: 'old', values: [5, null]}, {name: 'small', values: [1, 1]}];
  const grouped = start({group_by: 'stage'}, groups);
  assert.deepEqual(sides(applied(grouped), 'stage'), {base: 'old', value: 'new'});
  assert.equal(grouped.group_by, '');
  assert.equal(firstComparison(state(), {attributes: attributes.slice(0, 2), versions: [], groups: []}), null, 'two halves of the time then');
});

test('any click in any order compares two different values in a time that has both', () => {
  const choice = {key: 'service.version', values: ['1.9', '1.10', '1.11']};
  const halves = state({view: 'diff', time: {from: 500, until: 900}, base: {service: '', time: {from: 100, until: 500}, attrs: []}});
  const clicks = ['base', 'value'].flatMap((side) => choice.values.map((value) => [side, value]));
  for (const start of [state(), halves, state({attrs: [['service.version', '1.11']]})]) {
    for (const first of clicks) {
      for (const second of clicks) {
        let now = start;
        for (const [side, value] of [first, second]) {
          now = applied(withSide(now, choice, side, value), now);
          const {base, value: shown} = sides(now, 'service.version');
          assert.equal(side === 'base' ? base : shown, value, `${first} ${second}`);
          assert.notEqual(base, shown, `${first} ${second}`);
          assert.ok(choice.values.includes(base) && choice.values.includes(shown), `${first} ${second}: ${base} ${shown}`);
          assert.equal(now.base.time, null);
        }
        if (start === halves) assert.deepEqual(now.time, {from: 100, until: 900});
      }
    }
  }
});

test('a mark compares the time since a version with one of the same length before', () => {
  assert.deepEqual(marks(versions, {from: 0, until: 1000}).map(({value}) => value), ['1.10', '1.11']);
  assert.deepEqual(marks(versions, {from: 350, until: 1000}).map(({value}) => value), ['1.11']);
  const patch = sinceVersion(state({attrs: [['service.version', '1.9'], ['region', 'eu']]}), versions[2], {from: 250, until: 900});
  assert.deepEqual([patch.time, patch.base.time, patch.attrs], [{from: 400, until: 550}, {from: 250, until: 400}, [['region', 'eu']]]);
});

test('a slower function is not painted as faster: two times are compared by rate', () => {
  const times = {kind: 'delta', unit: 'nanoseconds', isCPU: true, shown: {from: 1000, until: 2000}};
  const scale = new Scale({...times, norm: '', base: {from: 0, until: 500}});
  assert.equal(scale.byShare, false);
  assert.equal(scale.factor, 2, 'the base is half as long');
  assert.deepEqual(scale.pair(100e6, 250e6), ['0.20 cores', '0.25 cores']);
  assert.equal(scale.change(100e6, 250e6), '+0.05 cores');
  assert.deepEqual([scale.pair(100e6, 250e6, true), scale.change(124e6, 250e6, true), scale.unitOfTable], [['0.20', '0.25'], '+0.00', ' cores']);
  assert.equal(new Scale({...times, norm: 'share', base: {from: 0, until: 500}}).factor, 1);
  const values = new Scale({...times, norm: '', base: null});
  assert.equal(values.byShare, true, 'values of an attribute are compared by share');
  assert.deepEqual(values.pair(59.5 * 60e9, 3.66 * 3600e9), ['0.99 h', '3.66 h'], 'one unit in a row');
  const state = new Scale({...times, kind: 'gauge', unit: 'bytes', norm: 'rate', base: {from: 0, until: 500}});
  assert.deepEqual([state.factor, state.text(2048)], [1, '2 KiB'], 'a state is a mean');
});
