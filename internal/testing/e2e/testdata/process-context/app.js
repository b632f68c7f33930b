// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// A process that publishes its context (OTEP 4719) by Datadog's library, which reads its configuration from the environment.
require('dd-trace').init();

setTimeout(() => console.log('started'), 1000);
setTimeout(() => {}, 120000);
