// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// The shop, profiled by Datadog's library, which reads its configuration from the environment.
require('dd-trace').init();

require('./shop').serveFor(6000, () => process.exit(0));
