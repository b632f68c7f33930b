// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// A small busy shop, profiled by Datadog's library, which the environment configures. It ends
// by itself.
require('dd-trace').init();
const { createHash } = require('crypto');

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
const deadline = Date.now() + 6000;
const buy = () => {
  if (Date.now() > deadline) {
    process.exit(shelves.length > 0 ? 0 : 1);
  }
  checksumOfTheCart(5000);
  shelves = fillTheShelves(5000);
  setTimeout(buy, 5);
};
buy();
