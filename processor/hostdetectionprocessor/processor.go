// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package hostdetectionprocessor

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/compact"
	"github.com/otelcol-profiles/otelcol-profiles/internal/service/environment"
)

// schemaURL is the version of the semantic conventions that `host.name` and `os.type` are of.
const schemaURL = "https://opentelemetry.io/schemas/1.40.0"

// The variables that `env` reads. The second is the former name of the first.
const (
	envVariable    = "OTEL_RESOURCE_ATTRIBUTES"
	oldEnvVariable = "OTEL_RESOURCE"
)

// detectors are those that need no SDK of a cloud.
var detectors = map[string]func(to pcommon.Map) error{"env": detectEnv, "system": detectSystem}

// hostDetection adds the attributes that Start has found to every resource.
type hostDetection struct {
	cfg *Config

	// found and schema are read only once Start has returned.
	found  pcommon.Map
	schema string
}

// Start runs the detectors.
func (p *hostDetection) Start(context.Context, component.Host) error {
	p.found = pcommon.NewMap()
	if slices.Contains(p.cfg.Detectors, "system") {
		p.schema = schemaURL
	}
	for _, name := range p.cfg.Detectors {
		attributes := pcommon.NewMap()
		if err := detectors[name](attributes); err != nil {
			return fmt.Errorf("detector %q: %w", name, err)
		}
		add(p.found, attributes, false)
	}
	return nil
}

func (p *hostDetection) profiles(_ context.Context, pd pprofile.Profiles) (pprofile.Profiles, error) {
	// An attribute of a message that an exporter has marshalled would have no key yet.
	compact.ResolveInPlace(pd)
	for _, rp := range pd.ResourceProfiles().All() {
		p.describe(rp)
	}
	return pd, nil
}

func (p *hostDetection) traces(_ context.Context, td ptrace.Traces) (ptrace.Traces, error) {
	for _, rs := range td.ResourceSpans().All() {
		p.describe(rs)
	}
	return td, nil
}

func (p *hostDetection) metrics(_ context.Context, md pmetric.Metrics) (pmetric.Metrics, error) {
	for _, rm := range md.ResourceMetrics().All() {
		p.describe(rm)
	}
	return md, nil
}

func (p *hostDetection) logs(_ context.Context, ld plog.Logs) (plog.Logs, error) {
	for _, rl := range ld.ResourceLogs().All() {
		p.describe(rl)
	}
	return ld, nil
}

// describe adds what was found to a resource of any signal.
func (p *hostDetection) describe(of interface {
	Resource() pcommon.Resource
	SchemaUrl() string
	SetSchemaUrl(url string)
}) {
	if of.SchemaUrl() == "" {
		of.SetSchemaUrl(p.schema)
	}
	add(of.Resource().Attributes(), p.found, p.cfg.Override)
}

// add copies attributes. It replaces those that exist only if override is set.
func add(to, from pcommon.Map, override bool) {
	for key, value := range from.All() {
		if held, exists := to.GetOrPutEmpty(key); !exists || override {
			value.CopyTo(held)
		}
	}
}

func detectSystem(to pcommon.Map) error {
	name, err := os.Hostname()
	if err != nil {
		return err
	}
	to.PutStr("host.name", name)
	to.PutStr("os.type", runtime.GOOS)
	return nil
}

func detectEnv(to pcommon.Map) error {
	for _, variable := range []string{envVariable, oldEnvVariable} {
		if value := strings.TrimSpace(os.Getenv(variable)); value != "" {
			for attribute, err := range environment.ResourceAttributes(value) {
				if err != nil {
					return fmt.Errorf("`%s` must be key=value pairs with commas between them: %w", variable, err)
				}
				to.PutStr(attribute.Key, attribute.Value)
			}
			return nil
		}
	}
	return nil
}
