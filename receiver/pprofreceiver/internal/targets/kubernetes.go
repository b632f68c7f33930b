// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !slim

package targets

import _ "github.com/prometheus/prometheus/discovery/kubernetes" // registers `kubernetes_sd_configs`
