// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

const sink = new Int32Array(1);

function hotWork(n) {
  for (let i = 0; i < n; i++) sink[0] += Math.imul(i, i);
}

function coldWork(n) {
  for (let i = 0; i < n; i++) sink[0] -= Math.imul(i, i);
}

const end = performance.now() + 180_000;

function round() {
  const began = performance.now();
  hotWork(6e6);
  coldWork(2e6);
  if (performance.now() < end) setTimeout(round, 3 * (performance.now() - began));
}

round();
