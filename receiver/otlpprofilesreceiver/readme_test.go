// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package otlpprofilesreceiver

import (
	"testing"

	"github.com/stretchr/testify/assert"

	otlplayouts "github.com/otelcol-profiles/otelcol-profiles/internal/otlp/layouts"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/collectortest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

func TestReadmeDefaults(t *testing.T) {
	cfg := createDefaultConfig().(*Config)
	grpc, http := cfg.Protocols.GRPC.GetOrInsertDefault(), cfg.Protocols.HTTP.GetOrInsertDefault()
	rows := profiletest.ReadmeTable(t, "README.md", "| key | type | default | meaning |")
	delete(rows, "key")
	defaults := map[string]any{
		"protocols.grpc.endpoint":              grpc.Server.NetAddr.Endpoint,
		"protocols.grpc.max_recv_msg_size_mib": grpc.Server.MaxRecvMsgSizeMiB,
		"protocols.grpc.read_timeout":          grpc.ReadTimeout,
		"protocols.http.endpoint":              http.Server.NetAddr.Endpoint,
		"protocols.http.max_request_body_size": http.Server.MaxRequestBodySize,
		"protocols.http.read_timeout":          http.Server.ReadTimeout,
	}
	collectortest.CheckDefaults(t, rows, 2, defaults)
	assert.Len(t, rows, len(defaults))
}

// TestMetadata compares the values of attributes that metadata.yaml lists with those that the code has.
func TestMetadata(t *testing.T) {
	declared := profiletest.LoadMetadata(t).Attributes
	var layouts, reasons, faults []string
	for i := range otlplayouts.NumLayouts {
		layouts = append(layouts, otlplayouts.Layout(i).String())
	}
	for i := range otlplayouts.NumDropReasons {
		reasons = append(reasons, otlplayouts.DropReason(i).String())
	}
	for i := range otlplayouts.NumRepairs {
		faults = append(faults, otlplayouts.Repair(i).String())
	}
	assert.Equal(t, layouts, declared["layout"].Enum)
	assert.Equal(t, reasons, declared["reason"].Enum)
	assert.Equal(t, faults, declared["fault"].Enum)
}
