// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package regroup moves the samples of a message to resources by process, in place: a message with a resource for the
// whole host becomes a message with a resource for each service.
//
//	scan.go     finds the attributes that the samples of each process share; Group.Identify names the process
//	decide.go   decides which processes share a resource, within bounds
//	lower.go    finds the attributes of a process's resource that move to its samples, so that others can share the resource
//	apply.go    moves attributes and samples
//
// The dictionary keeps all of its entries, and gets those that move to samples. Nothing may refer any more to those
// that moved to resources; that is the only fault which a conformant message can get. What reads entries by reference
// does not see them: the exporters, symbolize, otlp_profiles, and dictionary_dedup, which leaves them out. Indices out
// of range stay out of range. Everything takes time and memory in proportion to the message.
package regroup

import (
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/compact"
)

// Resource is a resource of a message, and the processes whose samples it has.
type Resource struct {
	// Attributes are only read.
	Attributes pcommon.Map
	Processes  []Process

	// Identify must set IsProcess if the resource is for one process. Then the attributes that Options.Lower lists move to
	// the samples, so that several processes can share a resource.
	IsProcess bool
}

// Process is what samples have about their process. Strings can be of any length.
type Process struct {
	PID                            int64 // NoPID if it is not known
	ExecutableName, ExecutablePath string
	ServiceName, Container         string
	// OTelServiceName and OTelResourceAttributes are process.environment_variable.OTEL_SERVICE_NAME and so on.
	OTelServiceName, OTelResourceAttributes string
	// Samples is the number of its samples.
	Samples int

	// Identify must set Identity.
	Identity Identity
	// tuple is the process's index in the scan.
	tuple int32
}

// Identity describes the resource for a process. Without a ServiceName the samples stay in their resource.
type Identity struct {
	ServiceName string
	// FromSample reports that the name comes from the sample's own attribute, which moves.
	FromSample bool
	// Attributes are further attributes, which the samples do not have. Key identifies them.
	Attributes []Attribute
	Key        string
}

// Attribute is an attribute of a resource. An attribute that the resource has already does not change.
type Attribute struct{ Key, Value string }

// Group has the functions that Regroup calls.
type Group struct {
	// Identify sets the Identity of all processes. It is called once for a message.
	Identify func([]Resource)
	// Admit reports whether a resource with that content is allowed.
	Admit func(content [32]byte) bool
}

// Stats counts the samples of processes that share the resource `other`.
type Stats struct {
	// OverResources counts those whose resource Admit refused.
	OverResources int
	// OverCopies counts those whose resource is so large that its copies would have made the message too large.
	OverCopies int
}

// NoPID means that the process id is not known. 0 is a process id: the kernel on an idle CPU.
const NoPID = -1

// Other is the service name of processes that have no resource of their own, because there are too many.
const Other = "other"

// The roles of sample attributes.
const (
	rolePID = iota
	roleExecutableName
	roleExecutablePath
	roleServiceName
	roleContainer
	roleOTelServiceName
	roleOTelResourceAttributes
	numRoles
)

var roleKeys = [numRoles]string{
	rolePID:                    "process.pid",
	roleExecutableName:         "process.executable.name",
	roleExecutablePath:         "process.executable.path",
	roleServiceName:            serviceNameKey,
	roleContainer:              "container.id",
	roleOTelServiceName:        "process.environment_variable.OTEL_SERVICE_NAME",
	roleOTelResourceAttributes: "process.environment_variable.OTEL_RESOURCE_ATTRIBUTES",
}

const serviceNameKey = "service.name"

// Regrouper regroups one message after another, and reuses its memory. It is not safe for concurrent use.
type Regrouper struct {
	keys   []string // by role
	moves  []bool   // by role
	lowers []int    // roles

	scan
	decision
	lowering
	stats Stats
}

// Options are keys of attributes.
type Options struct {
	// Move lists those that move from samples to resources, at most 50. service.name moves if it is the name.
	Move []string
	// Lower lists those that move from the resource of a process to its samples, such as process.pid. No key is in both
	// lists.
	Lower []string
}

// New makes a Regrouper.
func New(options Options) *Regrouper {
	r := &Regrouper{keys: append([]string(nil), roleKeys[:]...), moves: make([]bool, numRoles)}
	for _, key := range options.Move {
		if role := slices.Index(r.keys, key); role < 0 {
			r.keys, r.moves = append(r.keys, key), append(r.moves, true)
		} else {
			r.moves[role] = role != roleServiceName
		}
	}
	for role, key := range roleKeys {
		if slices.Contains(options.Lower, key) {
			r.lowers = append(r.lowers, role)
		}
	}
	r.roleOfKey = map[string]int8{}
	for role, key := range r.keys {
		r.roleOfKey[key] = int8(role)
	}
	return r
}

// Regroup changes a message, which must not be read-only.
func (r *Regrouper) Regroup(pd pprofile.Profiles, group Group) Stats {
	r.stats = Stats{}
	// Regrouping reads the attributes of resources and scopes, and may append to the string table.
	compact.ResolveInPlace(pd)
	resources := r.read(pd)
	group.Identify(resources)
	r.decide(pd, resources, group)
	if r.hasChanges() {
		r.apply(pd)
	}
	r.forget()
	return r.stats
}

// maxKeptSamples bounds the memory that is kept for the next message.
const maxKeptSamples = 1 << 16

// forget drops the references to the message.
func (r *Regrouper) forget() {
	if cap(r.tupleOf) > maxKeptSamples || cap(r.tuples) > maxKeptSamples {
		r.scan = scan{roleOfKey: r.roleOfKey}
	}
	clear(r.canonical)
	clear(r.processes)
	clear(r.resources)
	r.decision.forget()
	r.lowering.forget()
}

// stringValue returns the value of a string attribute, or "" if there is none.
func (r *Regrouper) stringValue(attributes pprofile.KeyValueAndUnitSlice, tuple []int32, role int) string {
	if tuple[role] == none {
		return ""
	}
	return attributes.At(int(tuple[role])).Value().Str()
}

// none is the index of an attribute that a process does not have.
const none = -1
