// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

import assert from 'node:assert/strict';
import {test} from 'node:test';
import * as format from '../static/format.js';

test('values have three digits and the largest step that fits', () => {
  for (const [value, unit, want] of [
    [0, 'nanoseconds', '0 ns'], [999, 'nanoseconds', '999 ns'], [1000, 'nanoseconds', '1 µs'], [3.1e9, 'nanoseconds', '3.10 s'],
    [42.14e9, 'nanoseconds', '42.1 s'], [999.6e6, 'nanoseconds', '1.00 s'], [-2500, 'ns', '−2.50 µs'], [90, 'seconds', '1.50 min'], [7200e3, 'ms', '2 h'],
    [1024, 'bytes', '1 KiB'], [1536, 'bytes', '1.50 KiB'], [5 * 1024 ** 4, 'bytes', '5 TiB'], [12345, 'count', '12.3 k'], [7, 'count', '7'],
    [3, 'objects', '3 objects'], [1500, '<b>', '1.50 k <b>'], [null, 'bytes', '–'], [NaN, 'bytes', '–'], [0.5, 'count', '0.50'],
    [1001, 'ns', '1.00 µs'], [99_960, 'ns', '100 µs'], [9.996e3, 'ns', '10.0 µs'], [999_400, 'ns', '999 µs'], [999_600, 'ns', '1.00 ms'],
    [250, 'us', '250 µs'], [250, 'µs', '250 µs'], [1500, 'μs', '1.50 ms'], [0.25, 'ms', '250 µs'], [2.5e-4, 'seconds', '250 µs'], [1.5, 'minutes', '1.50 min'],
    [1023, 'bytes', '1023 B'], [1025, 'bytes', '1.00 KiB'], [0.5, 'kilobytes', '512 B'], [3, 'MB', '3 MiB'], [1, 'GiB', '1 GiB'],
    [5, 'constructor', '5 constructor'], [5, '__proto__', '5 __proto__'], [5, 'toString', '5 toString'],
  ]) assert.equal(format.formatValue(value, unit), want, `${value} ${unit}`);
});

test('values that are compared have one unit', () => {
  assert.deepEqual([59.5 * 60e9, 3.66 * 3600e9].map((v) => format.formatValue(v, 'nanoseconds', 3.66 * 3600e9)), ['0.99 h', '3.66 h']);
});

test('rates: cores, seconds in a second, bytes and counts in a second', () => {
  for (const [value, unit, isCPU, want] of [
    [1e9, 'nanoseconds', true, '1 core'], [420e6, 'nanoseconds', true, '0.42 cores'], [1234567, 'nanoseconds', true, '0.0012 cores'], [15e6, 'nanoseconds', true, '0.015 cores'],
    [10, 'nanoseconds', true, '<0.0001 cores'], [0, 'nanoseconds', true, '0 cores'], [0.5, 'seconds', false, '0.50 s/s'],
    [2048, 'bytes', false, '2 KiB/s'], [12.34, 'count', false, '12.3/s'], [NaN, 'bytes', false, '–'], [null, 'bytes', true, '–'],
  ]) assert.equal(format.formatRate(value, unit, isCPU), want, `${value} ${unit}`);
});

test('one thing is not plural', () => {
  assert.deepEqual([0, 1, 2, 1500].map((n) => format.formatCount(n, 'value')), ['0 values', '1 value', '2 values', '1,500 values']);
});

test('units of time', () => {
  assert.deepEqual(['nanoseconds', 'ms', 'S', 'bytes', '', 'constructor'].map(format.isTime), [true, true, true, false, false, false]);
});

test('shares and changes', () => {
  assert.equal(format.formatShare(1, 0), '–');
  assert.equal(format.formatShare(184, 1000), '18.4 %');
  assert.equal(format.formatShare(1, 1e9), '<0.01 %');
  assert.equal(format.formatShare(5, 5), '100 %');
  assert.equal(format.formatPercent(-0.001, '+'), '0 %');
  assert.equal(format.formatPercent(0.04, '+'), '+0.04 %');
  assert.equal(format.formatChange(0, 0), '±0 %');
  assert.equal(format.formatChange(5, 0), 'new');
  assert.equal(format.formatChange(0, 5), 'gone');
  assert.equal(format.formatChange(150, 100), '+50.0 %');
  assert.equal(format.formatChange(50, 100), '−50.0 %');
});

test('times and durations', () => {
  const noon = new Date(2026, 10, 21, 12, 0, 5).getTime();
  assert.equal(format.formatTime(noon, noon + 1000), '12:00:05');
  assert.equal(format.formatTime(noon, noon + 86400e3), '2026-11-21 12:00:05');
  const label = format.tickLabels(noon + 86400e3);
  assert.deepEqual([noon, noon + 5000, noon + 12 * 3600e3 - 5000, noon + 12 * 3600e3 + 55e3].map(label), ['Nov 21, 12:00:05', '12:00:10', 'Nov 22', '00:01']);
  assert.equal(format.tickLabels(noon)(noon - 5000), '12:00');
  const fine = format.tickLabels(noon + 86400e3, 0.5);
  assert.deepEqual([noon + 7, noon + 7.4999999, noon + 999.9999].map(fine), ['Nov 21, 12:00:05.007000', '12:00:05.007500', '12:00:06.000000']);
  assert.deepEqual([noon - 5000, noon + 10].map(format.tickLabels(noon, 10)), ['12:00:00.000', '12:00:05.010']);
  assert.equal(format.formatRange(noon, noon + 1000, noon), '12:00:05 – 12:00:06');
  assert.equal(format.formatRange(noon, noon + 1000, noon + 86400e3), '2026-11-21 12:00:05 – 12:00:06');
  assert.equal(format.formatRange(noon - 86400e3, noon, noon), '2026-11-20 12:00:05 – 2026-11-21 12:00:05');
  assert.equal(format.formatDuration(0.25), '250 µs');
  assert.equal(format.formatDuration(400), '400 ms');
  assert.equal(format.formatDuration(90e3), '90 s');
  assert.equal(format.formatDuration(900e3), '15 min');
  assert.equal(format.formatDuration(86400e3), '24 h');
  assert.equal(format.formatDuration(14 * 86400e3), '14 days');
});

test('the zone of a time', () => {
  const before = process.env.TZ;
  for (const [zone, summer, winter] of [['Europe/Berlin', 'UTC+02:00', 'UTC+01:00'], ['Asia/Kolkata', 'UTC+05:30', 'UTC+05:30'], ['America/St_Johns', 'UTC−02:30', 'UTC−03:30'], ['UTC', 'UTC', 'UTC']]) {
    process.env.TZ = zone;
    assert.deepEqual([format.formatZone(Date.UTC(2026, 6, 1)), format.formatZone(Date.UTC(2026, 0, 1))], [summer, winter], zone);
  }
  if (before === undefined) delete process.env.TZ;
  else process.env.TZ = before;
  assert.equal(format.formatUTC(Date.UTC(2026, 0, 31, 12, 0, 5, 250)), '2026-01-31 12:00:05 UTC');
  assert.equal(format.formatUTC(1e20), '–');
});

test('hostile text becomes visible and short', () => {
  assert.equal(format.clean('a\u0000b\nc\u001b[31m\u202egnp.exe'), 'a\\x00b\\nc\\x1b[31m\\u202egnp.exe');
  assert.equal(format.clean('<img src=x>'), '<img src=x>');
  assert.equal(format.clean('N'.repeat(1 << 20), 10), 'NNNNNNNNN…');
  assert.equal(format.clean(undefined), '');
  assert.ok(format.shortKey('N'.repeat(1 << 20)).length < 200);
  assert.notEqual(format.shortKey('N'.repeat(5000)), format.shortKey('N'.repeat(5001)));
});

test('groups that a number tells apart have hues far apart', () => {
  for (const name of ['', 'shop-7f9c-', 'GPU 0 stream ']) {
    const hues = Array.from({length: 8}, (_, i) => format.hueOf(`${name}${i}`)).sort((a, b) => a - b);
    hues.forEach((hue, i) => assert.ok((hues[(i + 1) % 8] - hue + 360) % 360 > 15, `${name}: ${hues}`));
  }
  assert.ok(format.hueOf('x'.repeat(1 << 20)) < 360);
});
