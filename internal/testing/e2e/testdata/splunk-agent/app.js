// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// The shop as an HTTP server, profiled by Splunk's agent. It prints the trace and span of each request.
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
const { serve } = require('./shop');

const server = http.createServer((request, response) => {
  const { traceId, spanId } = trace.getActiveSpan().spanContext();
  console.log(`span ${traceId}/${spanId}`);
  serve();
  response.end();
});

server.listen(0, 'localhost', () => {
  const { port } = server.address();
  const deadline = Date.now() + 5000;
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
