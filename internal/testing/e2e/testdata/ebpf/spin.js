// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

const sink = new Int32Array(1);

// cpuTime is the processor time of the process, in milliseconds.
const cpuTime = () => { const { user, system } = process.cpuUsage(); return (user + system) / 1000; };

function hotWork() {
  for (const end = cpuTime() + 30; cpuTime() < end;) for (let i = 0; i < 100_000; i++) sink[0] += Math.imul(i, i);
}

function coldWork() {
  for (const end = cpuTime() + 10; cpuTime() < end;) for (let i = 0; i < 100_000; i++) sink[0] -= Math.imul(i, i);
}

const end = performance.now() + 180_000;

function round() {
  const began = performance.now();
  hotWork();
  coldWork();
  if (performance.now() < end) setTimeout(round, 3 * (performance.now() - began));
}

round();
