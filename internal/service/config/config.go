// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package config has what components share to read their configuration: Faults, so that Validate reports all faults at
// once; Unmarshal, so that a misspelt key is an error in sections that squash one of the Collector's HTTP configs; and
// converters, which see a configuration before any component does: for defaults of its telemetry, and for faults that
// no component can see or explain.
package config

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"

	"go.opentelemetry.io/collector/config/confignet"

	"github.com/otelcol-profiles/otelcol-profiles/internal/service/redact"
)

// MaxBytes is the largest value of a limit in bytes: computations with a limit must not overflow.
const MaxBytes = 1 << 40

// Faults are the faults found so far. The zero value has none.
type Faults []error

// Require adds a fault unless ok.
func (f *Faults) Require(ok bool, format string, args ...any) {
	if !ok {
		*f = append(*f, fmt.Errorf(format, args...))
	}
}

// RequireURL adds a fault unless the address, which is the value of a key, is a URL of HTTP. The fault shows no secrets
// of it.
func (f *Faults) RequireURL(key, address string) {
	u, err := url.Parse(address)
	f.Require(err == nil && u.Host != "" && (u.Scheme == "http" || u.Scheme == "https"),
		"`%s` must be an http or https URL with a host, found %q", key, Shown(address))
}

// Shown returns an address, which need not be valid, without the secrets that it may have.
func Shown(address string) string {
	if strings.ContainsAny(address, "@?") { // others have no secrets, and some cannot be parsed
		return redact.RawURL(address)
	}
	return address
}

// RequireListener adds a fault unless an address, which is the value of `endpoint`, is one to listen on.
func (f *Faults) RequireListener(address *confignet.AddrConfig) {
	found := address.Endpoint
	if found == "" || address.Transport == confignet.TransportTypeUnix {
		f.Require(found != "", "`endpoint` must be set")
		return
	}
	_, port, err := net.SplitHostPort(found)
	if err == nil && port != "" {
		_, err = net.LookupPort("tcp", port)
	}
	f.Require(err == nil && port != "", "`endpoint` must be a host and a port, such as localhost:4040, found %q", found)
}

// Add adds an error unless it is nil.
func (f *Faults) Add(err error) {
	if err != nil {
		*f = append(*f, err)
	}
}

// RequireKeys adds a fault for each entry of a list, which is the value of a key, that is empty, there twice, or has
// spaces around it: the Collector makes a list of the string "a, b", spaces included.
func (f *Faults) RequireKeys(key string, list []string) {
	for i, entry := range list {
		f.Require(entry != "", "`%s` must not have an empty entry", key)
		f.Require(strings.TrimSpace(entry) == entry,
			"`%s` must not have spaces around an entry, found %q (lists are written [a, b])", key, entry)
		f.Require(!slices.Contains(list[:i], entry), "`%s` must be distinct, found %q twice", key, entry)
	}
}

// Err joins all faults. It is nil if there are none.
func (f Faults) Err() error { return errors.Join(f...) }

// RequireProfileBytes adds a fault if `max_profile_bytes` is out of its bounds.
func (f *Faults) RequireProfileBytes(found int) {
	f.Require(found > 0, "`max_profile_bytes` must be positive, found %d", found)
	f.Require(int64(found) <= MaxBytes, "`max_profile_bytes` must be at most %d, found %d", int64(MaxBytes), found)
}
