// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// The shop, profiled by the version of Pyroscope's SDK that the variable SDK names.
const sdk = require(process.env.SDK);
const pyroscope = sdk.default || sdk;

pyroscope.init({
  appName: `shop.${process.env.SDK}`,
  serverAddress: process.env.COLLECTOR,
  tags: { region: 'eu' },
  flushIntervalMs: 1000,
  wall: { samplingDurationMs: 1000, collectCpuTime: true },
  heap: { samplingIntervalBytes: 4096 },
});
pyroscope.start();

// A round of the SDK that is under way when it is stopped throws: its profiler is stopped already.
let stopped = false;
process.on('uncaughtException', (error) => {
  console.error(error);
  if (!stopped) process.exit(1);
});

require('./shop').serveFor(4000, () => {
  stopped = true;
  const done = () => process.exit(0);
  setTimeout(done, 5000).unref();
  Promise.resolve(pyroscope.stop()).then(() => setTimeout(done, 500), (error) => {
    console.error(error);
    process.exit(2);
  });
});
