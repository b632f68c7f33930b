// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// A small busy shop, profiled by the version of Pyroscope's SDK that SDK names. It ends by itself.
const sdk = require(process.env.SDK);
const pyroscope = sdk.default || sdk;
const { createHash } = require('crypto');

pyroscope.init({
  appName: `shop.${process.env.SDK}`,
  serverAddress: process.env.COLLECTOR,
  tags: { region: 'eu' },
  flushIntervalMs: 1000,
  wall: { samplingDurationMs: 1000, collectCpuTime: true },
  heap: { samplingIntervalBytes: 4096 },
});
pyroscope.start();

function checksumOfTheCart(items) {
  let sum = '';
  for (let i = 0; i < items; i++) {
    sum = createHash('sha256').update(sum + i).digest('hex');
  }
  return sum;
}

function fillTheShelves(size) {
  return Array.from({ length: size }, (_, i) => ({ name: `shelf ${i}`, goods: new Array(10).fill(i) }));
}

let shelves = [];
const deadline = Date.now() + 4000;
const buy = () => {
  if (Date.now() > deadline) {
    const done = () => process.exit(shelves.length > 0 ? 0 : 1);
    setTimeout(done, 5000).unref();
    Promise.resolve(pyroscope.stop()).then(() => setTimeout(done, 500), (error) => {
      console.error(error);
      process.exit(2);
    });
    return;
  }
  checksumOfTheCart(5000);
  shelves = fillTheShelves(5000);
  setTimeout(buy, 5);
};
buy();
