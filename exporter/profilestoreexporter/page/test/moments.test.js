// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

import assert from 'node:assert/strict';
import {test} from 'node:test';

// The modules of the page read what a browser has when they are loaded.
globalThis.document ??= {};
const {kindOf} = await import('../static/colors.js');
const {cellTime, rangeOf} = await import('../static/heatmap.js');
const {leftOut, refusedLine, troubleNotices} = await import('../static/messages.js');
const {drawTicks, extentOf, fineTicks, stateColor} = await import('../static/threads.js');
const {formatState, parseState, queryOf} = await import('../static/state.js');

test('a cell of the heat map is a part of its second', () => {
  const answer = {from: 1_700_000_000_000, seconds: 1, rows: 50};
  assert.deepEqual(cellTime(answer, 2, 25), {from: 1_700_000_002_500, length: 20});
  assert.deepEqual(rangeOf(answer, {column: 3, row: 1}, {column: 2, row: 25}), {from: 1_700_000_002_500, until: 1_700_000_003_040});
});

test('columns of several seconds are chosen whole', () => {
  const answer = {from: 0, seconds: 4, rows: 50};
  assert.deepEqual(rangeOf(answer, {column: 1, row: 9}, {column: 1, row: 3}), {from: 4000, until: 8000});
});

test('a state or a kind may have any name', () => {
  for (const word of ['constructor', '__proto__', 'toString', '']) {
    assert.match(stateColor(word, false), /^oklch\(0\.7 0\.12 \d+\)$/, word);
    assert.equal(kindOf({kind: [word], name: ['f']}, 0), '', word);
  }
  assert.equal(kindOf({kind: ['kernel'], name: ['f']}, 0), 'kernel');
});

test('ticks are round, down to microseconds', () => {
  const {times, step} = fineTicks(1_700_000_000_000.2, 1_700_000_000_001.2, 5);
  assert.equal(step, 0.2);
  assert.ok(times.length >= 5 && times.every((t) => t >= 1_700_000_000_000.19 && t <= 1_700_000_000_001.21), String(times));
  assert.deepEqual(fineTicks(1_700_000_001_600, 1_700_000_016_600, 3).times.map((t) => t - 1_700_000_000_000), [5000, 10_000, 15_000]);
});

test('times of the threads do not cover each other, on whichever day and however far one zooms in', () => {
  for (const from of [1_700_000_000_000.2, Date.now()]) {
    for (const span of [0.01, 0.9, 40, 900, 9e3, 3600e3]) {
      const drawn = [];
      const pen = {fillRect() {}, measureText: (text) => ({width: 6 * text.length}), fillText: (text, left) => drawn.push({text, left})};
      drawTicks(pen, fineTicks(from, from + span, 1000 / 110), (t) => (t - from) / span * 1000, 100, {});
      assert.ok(drawn.length > 3, `${drawn.length} times in ${span} ms`);
      drawn.slice(1).forEach(({text, left}, i) => assert.ok(left >= drawn[i].left + 6 * drawn[i].text.length, `${drawn[i].text} covers ${text}`));
    }
  }
});

test('the threads show where there are events', () => {
  const shown = {from: 1000, until: 9000};
  assert.deepEqual(extentOf({base: 2000, start: [0, 5e6], length: [1e6, 10e6]}, shown), {from: 2000, until: 2015});
  assert.deepEqual(extentOf({base: 500, start: [0], length: [9e9]}, shown), shown, 'a wait that began before goes on');
  assert.deepEqual(extentOf({base: 0, start: [], length: []}, shown), shown);
});

test('what is left out of the threads is said with its reason', () => {
  const answer = {start: new Array(18), lanes: new Array(200), left_out: 12, lanes_left_out: 3};
  assert.deepEqual(leftOut(answer, 20), ['The 20 longest of 30 events are drawn; zoom in to see shorter ones.',
    'The 200 threads with the most time are drawn, 3 others are not; a filter shows them.']);
  assert.equal(leftOut(answer, 30).length, 1, 'only threads are left out, with their events');
  assert.deepEqual(leftOut({start: [1], lanes: [''], left_out: 0, lanes_left_out: 0}, 20), []);
  assert.deepEqual(leftOut({observations: 5}, 20), [], 'an answer of another kind');
});

test('the brushed part is in the URL, and asked for in the views by time only', () => {
  const state = parseState('#service=shop&profile=off_cpu&view=heat&part.from=1700000000000.25&part.until=1700000000000.75');
  assert.equal(parseState(formatState(state)).part.until, 1700000000000.75);
  assert.deepEqual(queryOf(state).filter(([name]) => name === 'from'), [['from', '1700000000000.25']]);
  assert.deepEqual(queryOf({...state, view: 'flame'}).filter(([name]) => name === 'from'), []);
});

test('what the store refuses, drops or cannot write is said with its number and the key to change', () => {
  assert.deepEqual(troubleNotices({}, {disk_failing: 0}), []);
  const lines = troubleNotices({'refused.max_series': 1234, 'evicted.bytes': 1, 'refused.malformed_samples': 1, constructor: 3}, {disk_failing: 1});
  assert.equal(lines.length, 4);
  assert.match(lines[0], /`storage.directory`/);
  assert.match(lines[1], /^1,234 profiles were refused.*`keep.max_series`/);
  assert.match(lines[2], /^1 profile was dropped.*`keep.max_bytes`/);
  assert.match(lines[3], /^1 sample was dropped/);
});

test('refused senders in one line', () => {
  const sender = (address, status, count, reason) => ({address, endpoint: 'POST :4040/v1/pprof', status, count, last: 0, reason});
  assert.equal(refusedLine([sender('a', 204, 9, '')]), '');
  assert.equal(refusedLine([sender('a', 400, 1, 'not a pprof'), sender('a', 204, 9, '')]), '1 request of 1 sender was refused in the last ten minutes: not a pprof');
  assert.equal(refusedLine([sender('a', 401, 2, ''), sender('b', 503, 1, 'full')]), '3 requests of 2 senders were refused in the last ten minutes: status 401');
});
