// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// A small busy shop, which the applications in the folders beside this file run under a profiler.
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

function serve() {
  checksumOfTheCart(5000);
  shelves = fillTheShelves(5000);
}

// serveFor serves customers for a time, then calls done.
function serveFor(millis, done) {
  const deadline = Date.now() + millis;
  const next = () => {
    if (Date.now() > deadline) {
      done();
      return;
    }
    serve();
    setTimeout(next, 5);
  };
  next();
}

module.exports = { serve, serveFor };
