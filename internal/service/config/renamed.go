// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"go.opentelemetry.io/collector/confmap"
)

// replaced has the keys that were renamed or removed: the kind and type of a component, the key in its section, and what to
// write instead.
var replaced = []struct{ kind, typ, key, instead string }{
	{"receivers", "pprof", "limits::max_bytes_in_flight", budgetInstead},
	{"receivers", "splunk_profiling", "limits::max_bytes_in_flight", budgetInstead},
	{"receivers", "otlp_profiles", "limits::max_bytes_in_flight", budgetInstead},
	{"receivers", "pprof", "limits::max_text_bytes", fixedInstead},
	{"receivers", "pprof", "limits::max_expansion", fixedInstead},
	{"receivers", "splunk_profiling", "limits::max_text_bytes", fixedInstead},
	{"receivers", "splunk_profiling", "limits::max_expansion", fixedInstead},
	{"connectors", "splunk_profiling", "limits::max_text_bytes", fixedInstead},
	{"connectors", "splunk_profiling", "limits::max_expansion", fixedInstead},
	{"receivers", "pprof", "drain_timeout", drainInstead},
	{"receivers", "pprof", "go_trace::period", fixedInstead},
	{"receivers", "pprof", "go_trace::system_goroutines", fixedInstead},
	{"receivers", "pprof", "go_trace::gc_workers", fixedInstead},
	{"receivers", "pprof", "go_trace::forever_blocked", fixedInstead},
	{"receivers", "pprof", "go_trace::max_threads", fixedInstead},
	{"receivers", "pprof", "go_trace::max_legacy_bytes", fixedInstead},
	{"receivers", "splunk_profiling", "drain_timeout", drainInstead},
	{"receivers", "otlp_profiles", "drain_timeout", drainInstead},
	{"exporters", "profile_store", "server::drain_timeout", drainInstead},
	{"exporters", "profile_store", "files", filesInstead},
	{"exporters", "profile_store", "sending_queue", "remove it: the store has each message before the sender has its answer"},
	{"exporters", "profile_store", "retry_on_failure", "remove it: the store has each message before the sender has its answer"},
	{"connectors", "splunk_profiling", "limits::max_bytes_in_flight", budgetInstead},
	{"processors", "dictionary_dedup", "order_by_frequency", "remove it: tables are always ordered for compression"},
	{"processors", "dictionary_dedup", "combine_samples", "remove it: samples with equal stack, attributes and link are always combined"},
	{"processors", "dictionary_dedup", "drain_timeout", drainInstead},
	{"receivers", "profiling", "consume_timeout", fixedInstead},
	{"receivers", "profiling", "retry_initial_interval", fixedInstead},
	{"receivers", "profiling", "retry_max_interval", fixedInstead},
	{"exporters", "profiles_to_logs", "drain_timeout", drainInstead},
	{"processors", "process_resource", "resource_ttl", fixedInstead},
	{"processors", "process_resource", "proc::max_file_bytes", fixedInstead},
	{"processors", "process_resource", "proc::max_processes", fixedInstead},
	{"processors", "process_resource", "proc::refresh_interval", fixedInstead},
	{"processors", "process_resource", "proc::max_wait", fixedInstead},
	{"processors", "symbolize", "report_interval", fixedInstead},
	{"processors", "symbolize", "workers", fixedInstead},
	{"processors", "symbolize", "queue_size", fixedInstead},
	{"processors", "symbolize", "max_modules", fixedInstead},
	{"processors", "symbolize", "max_pending_addresses", fixedInstead},
	{"processors", "symbolize", "max_file_bytes", fixedInstead},
	{"processors", "symbolize", "max_table_bytes", fixedInstead},
	{"processors", "symbolize", "max_work_bytes", fixedInstead},
	{"processors", "symbolize", "max_open_files", fixedInstead},
	{"processors", "symbolize", "max_open_bytes", fixedInstead},
	{"processors", "symbolize", "keep_open", fixedInstead},
	{"processors", "symbolize", "retry_interval", fixedInstead},
	{"processors", "symbolize", "debuginfod::max_file_bytes", fixedInstead},
	{"processors", "symbolize", "debuginfod::missing_interval", fixedInstead},
	{"processors", "symbolize", "debuginfod::initial_backoff", fixedInstead},
	{"processors", "symbolize", "debuginfod::max_backoff", fixedInstead},
	{"processors", "symbolize", "uploads::refresh_interval", fixedInstead},
}

// replacedTypes has the components that were renamed, by kind and type.
var replacedTypes = map[string]string{
	"exporters/pprof": "it is two exporters now: `profile_store` keeps profiles and has the page (`server`, `keep`, `storage`), and " +
		"`pprof_file` writes pprof files (what was in `files`, `sending_queue` and `retry_on_failure`)",
}

const filesInstead = "the exporter `pprof_file` writes pprof files: move the keys of this section there, without `files`"

const drainInstead = "remove it: the time follows from that of the whole collector, the environment variable OTELCOL_PROFILES_SHUTDOWN_TIMEOUT"

// fixedInstead is for keys that nobody had a reason to change.
const fixedInstead = "remove it: the value is fixed now, and the component's README has it"

const budgetInstead = "remove it: the process has one budget, which follows from its memory limit (memory_limiter, GOMEMLIMIT, or the container's limit)"

// NewConverterFactory returns a factory of a converter that changes nothing. It reports all keys that were renamed or removed.
func NewConverterFactory() confmap.ConverterFactory {
	return confmap.NewConverterFactory(func(confmap.ConverterSettings) confmap.Converter { return renamed{} })
}

type renamed struct{}

// Convert is called with the whole configuration, before any component is made.
func (renamed) Convert(_ context.Context, conf *confmap.Conf) error {
	var faults Faults
	keys := conf.AllKeys()
	slices.Sort(keys)
	last := ""
	for _, path := range keys {
		kind, rest, _ := strings.Cut(path, confmap.KeyDelimiter)
		id, key, _ := strings.Cut(rest, confmap.KeyDelimiter)
		typ, _, _ := strings.Cut(id, "/")
		if instead, isReplaced := replacedTypes[kind+"/"+typ]; isReplaced && last != kind+id {
			last = kind + id
			faults.Add(fmt.Errorf("`%s.%s`: %s", kind, id, instead))
		}
		for _, old := range replaced {
			if kind == old.kind && typ == old.typ && (key == old.key || strings.HasPrefix(key, old.key+confmap.KeyDelimiter)) {
				faults.Add(fmt.Errorf("`%s`: %s", strings.ReplaceAll(path, confmap.KeyDelimiter, "."), old.instead))
			}
		}
	}
	return faults.Err()
}
