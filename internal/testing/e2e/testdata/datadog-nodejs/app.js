// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// The shop, profiled by Datadog's library, which reads its configuration from the environment.
require('dd-trace').init();

// On a busy machine the library begins late.
const wanted = 3, deadline = Date.now() + 60_000;
let uploads = 0;
require('diagnostics_channel').subscribe('http.client.response.finish', ({ request }) => {
  uploads += request.path.startsWith('/profiling/');
});

const { serveFor } = require('./shop');
const finish = () => (uploads < wanted && Date.now() < deadline ? serveFor(1000, finish) : process.exit(0));
serveFor(5000, finish);
