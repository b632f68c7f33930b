// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// A small busy shop: every request hashes and sorts inside a span, so that a profiler has something to see. It prints
// the trace and span of each request, and ends by itself.
const { start, stop } = require('@splunk/otel');

start({
  serviceName: 'busy-shop',
  endpoint: process.env.COLLECTOR,
  tracing: { spanExporterFactory: () => [] },
  metrics: false,
  logging: false,
  profiling: {
    endpoint: process.env.COLLECTOR,
    callstackInterval: 10,
    collectionDuration: 1000,
    memoryProfilingEnabled: true,
  },
});

const { trace } = require('@opentelemetry/api');
const http = require('http');
const { createHash } = require('crypto');

function checksumOfTheCart(items) {
  let sum = '';
  for (let i = 0; i < items; i++) {
    sum = createHash('sha256').update(sum + i).digest('hex');
  }
  return sum;
}

function sortTheShelves(size) {
  const shelves = Array.from({ length: size }, (_, i) => (i * 7919) % size);
  return shelves.sort((a, b) => a - b);
}

const server = http.createServer((request, response) => {
  const { traceId, spanId } = trace.getActiveSpan().spanContext();
  console.log(`span ${traceId}/${spanId}`);
  sortTheShelves(20000);
  response.end(checksumOfTheCart(20000));
});

server.listen(0, 'localhost', () => {
  const { port } = server.address();
  const deadline = Date.now() + Number(process.env.RUN_MILLIS || 5000);
  const buy = () => {
    if (Date.now() > deadline) {
      server.close();
      setTimeout(() => stop().then(() => process.exit(0)), 1500);
      return;
    }
    http.get({ host: 'localhost', port }, (response) => {
      response.resume();
      response.on('end', () => setTimeout(buy, 5));
    });
  };
  buy();
});
