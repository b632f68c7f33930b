// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package ingest

import "go.opentelemetry.io/collector/pdata/pcommon"

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

	unknownService = "unknown_service"
)

// Identity says where a payload comes from. Its maps are shared between payloads and read only.
type Identity struct {
	// Derived is what the receiver found out by itself; configured attributes win over it.
	Derived pcommon.Map
	// Stated is what the sender said; it wins over configured attributes.
	Stated pcommon.Map
}

// NewIdentity returns that of an unknown service.
func NewIdentity() Identity {
	id := Identity{Derived: pcommon.NewMap(), Stated: pcommon.NewMap()}
	id.Derived.PutStr(AttributeServiceName, unknownService)
	return id
}

func (id Identity) putTo(attributes, configured pcommon.Map) {
	for _, from := range []pcommon.Map{id.Derived, configured, id.Stated} {
		for key, value := range from.All() {
			value.CopyTo(attributes.PutEmpty(key))
		}
	}
}
