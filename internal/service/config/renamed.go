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

// replaced has the keys that were renamed or removed: the kind and type of a component, what to write instead, and the keys in its
// section.
var replaced = []struct {
	kind, typ, instead string
	keys               []string
}{
	{"receivers", "pprof", budgetInstead, []string{"limits::max_bytes_in_flight"}},
	{"receivers", "splunk_profiling", budgetInstead, []string{"limits::max_bytes_in_flight"}},
	{"receivers", "otlp_profiles", budgetInstead, []string{"limits::max_bytes_in_flight"}},
	{"receivers", "pprof", fixedInstead, []string{
		"limits::max_text_bytes", "limits::max_expansion", "go_trace::period", "go_trace::system_goroutines", "go_trace::gc_workers",
		"go_trace::forever_blocked", "go_trace::max_threads", "go_trace::max_legacy_bytes",
	}},
	{"receivers", "splunk_profiling", fixedInstead, []string{"limits::max_text_bytes", "limits::max_expansion"}},
	{"connectors", "splunk_profiling", fixedInstead, []string{"limits::max_text_bytes", "limits::max_expansion"}},
	{"receivers", "pprof", drainInstead, []string{"drain_timeout"}},
	{"receivers", "splunk_profiling", drainInstead, []string{"drain_timeout"}},
	{"receivers", "otlp_profiles", drainInstead, []string{"drain_timeout"}},
	{"exporters", "profile_store", drainInstead, []string{"server::drain_timeout"}},
	{"exporters", "profile_store", filesInstead, []string{"files"}},
	{"exporters", "profile_store", storedInstead, []string{"sending_queue", "retry_on_failure"}},
	{"connectors", "splunk_profiling", budgetInstead, []string{"limits::max_bytes_in_flight"}},
	{"processors", "dictionary_dedup", "remove it: tables are always ordered for compression", []string{"order_by_frequency"}},
	{"processors", "dictionary_dedup", "remove it: samples with equal stack, attributes and link are always combined", []string{
		"combine_samples",
	}},
	{"processors", "dictionary_dedup", drainInstead, []string{"drain_timeout"}},
	{"receivers", "profiling", fixedInstead, []string{"consume_timeout", "retry_initial_interval", "retry_max_interval"}},
	{"exporters", "profiles_to_logs", drainInstead, []string{"drain_timeout"}},
	{"processors", "process_resource", fixedInstead, []string{
		"resource_ttl", "proc::max_file_bytes", "proc::max_processes", "proc::refresh_interval", "proc::max_wait",
	}},
	{"processors", "symbolize", fixedInstead, []string{
		"report_interval", "workers", "queue_size", "max_modules", "max_pending_addresses", "max_file_bytes", "max_table_bytes",
		"max_work_bytes", "max_open_files", "max_open_bytes", "keep_open", "retry_interval", "debuginfod::max_file_bytes",
		"debuginfod::missing_interval", "debuginfod::initial_backoff", "debuginfod::max_backoff", "uploads::refresh_interval",
	}},
}

// replacedTypes has the components that were renamed, by kind and type.
var replacedTypes = map[string]string{
	"exporters/pprof": "it is two exporters now: `profile_store` keeps profiles and has the page (`server`, `keep`, `storage`), and " +
		"`pprof_file` writes pprof files (what was in `files`, `sending_queue` and `retry_on_failure`)",
}

const storedInstead = "remove it: the store has each message before the sender has its answer"

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
			isOld := func(name string) bool { return key == name || strings.HasPrefix(key, name+confmap.KeyDelimiter) }
			if kind == old.kind && typ == old.typ && slices.ContainsFunc(old.keys, isOld) {
				faults.Add(fmt.Errorf("`%s`: %s", strings.ReplaceAll(path, confmap.KeyDelimiter, "."), old.instead))
			}
		}
	}
	return faults.Err()
}
