// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package ingest

import (
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/kind"
)

// Attribute keys of the semantic conventions.
const (
	AttributeServiceName       = "service.name"
	AttributeServiceNamespace  = "service.namespace"
	AttributeServiceVersion    = "service.version"
	AttributeServiceInstanceID = "service.instance.id"
	AttributeServerAddress     = "server.address"
	AttributeServerPort        = "server.port"
	AttributeURLFull           = "url.full"
	AttributeFileName          = "file.name"
	AttributeFilePath          = "file.path"
)

// Identity is where a payload comes from. Its maps are shared between payloads and read only.
type Identity struct {
	// Derived are the attributes that the receiver found out by itself; configured attributes win over them.
	Derived pcommon.Map
	// Stated are the attributes that the sender stated; they win over configured ones.
	Stated pcommon.Map
}

// NewIdentity returns the identity of an unknown service.
func NewIdentity() Identity {
	id := Identity{Derived: pcommon.NewMap(), Stated: pcommon.NewMap()}
	id.Derived.PutStr(AttributeServiceName, kind.UnknownService)
	return id
}

func (id Identity) putTo(attributes, configured pcommon.Map) {
	for _, from := range []pcommon.Map{id.Derived, configured, id.Stated} {
		for key, value := range from.All() {
			value.CopyTo(attributes.PutEmpty(key))
		}
	}
}
