// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package procfs

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"io"
	"math"
	"os"
	"slices"
	"strconv"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/wire"
)

// Context is the process context (OTEP 4719): the resource that a process publishes in a named mapping of its memory.
type Context struct {
	Outcome ContextOutcome
	// Attributes are those of its resource that were asked for, with strings as values, each key once.
	Attributes []Attribute
}

// Attribute is an attribute of a resource.
type Attribute struct{ Key, Value string }

// ContextOutcome is how reading a process context ended.
type ContextOutcome int

// The outcomes. Only ContextRead has attributes.
const (
	// ContextNone means that the process has no mapping of that name.
	ContextNone ContextOutcome = iota
	// ContextRead means that it was read.
	ContextRead
	// ContextUnreadable means that the memory could not be read, because of missing rights or an address without memory.
	ContextUnreadable
	// ContextUnsupported means that the mapping has another signature or version.
	ContextUnsupported
	// ContextChanging means that the process wrote it during each attempt to read it.
	ContextChanging
	// ContextTooLarge means that it is above maxContextBytes.
	ContextTooLarge
	// ContextMalformed means that it is not a protobuf message.
	ContextMalformed
	// NumContextOutcomes is the number of outcomes.
	NumContextOutcomes int = iota
)

var contextOutcomeNames = [NumContextOutcomes]string{"none", "read", "unreadable", "unsupported", "changing",
	"too_large", "malformed"}

func (o ContextOutcome) String() string { return contextOutcomeNames[o] }

const (
	// maxMapsBytes bounds the reading of /proc/<pid>/maps: some ten thousand mappings.
	maxMapsBytes = 1 << 20
	// maxContextMappings bounds the mappings of that name whose memory is looked at. There should be one.
	maxContextMappings = 4
	// maxContextBytes bounds the payload. A resource has a few hundred bytes.
	maxContextBytes = 64 << 10
	// maxContextReads is how often a context is read that changes meanwhile. A writer needs microseconds.
	maxContextReads = 3
)

func (r *Reader) readContext(dir *os.Root) Context {
	maps, err := dir.Open("maps")
	if err != nil {
		return Context{}
	}
	defer func() { _ = maps.Close() }()
	addresses := findContexts(io.LimitReader(maps, maxMapsBytes))
	if len(addresses) == 0 {
		return Context{}
	}
	memory, err := dir.Open("mem")
	if err != nil {
		return Context{Outcome: ContextUnreadable}
	}
	defer func() { _ = memory.Close() }()
	var c Context
	for _, address := range addresses {
		c = readContextAt(memory, address, r.ContextKeys)
		if c.Outcome != ContextUnsupported && c.Outcome != ContextUnreadable {
			break // the mapping is a context; any other is skipped
		}
	}
	return c
}

// findContexts returns the addresses of mappings with the name of a context. maps has a line for each mapping: address
// range, rights, offset, device, inode, name.
func findContexts(maps io.Reader) (addresses []uint64) {
	const nameField = 5
	lines := bufio.NewScanner(maps)
	for lines.Scan() && len(addresses) < maxContextMappings {
		if !bytes.Contains(lines.Bytes(), []byte("OTEL_CTX")) {
			continue // fast path
		}
		fields := bytes.Fields(lines.Bytes())
		if len(fields) <= nameField || fields[1][0] != 'r' || !isContextName(fields[nameField]) {
			continue
		}
		begin, _, _ := bytes.Cut(fields[0], []byte("-"))
		if address, err := strconv.ParseUint(string(begin), 16, 64); err == nil {
			addresses = append(addresses, address)
		}
	}
	return addresses
}

// isContextName reports whether a mapping may be a context: a memfd, or anonymous memory, shared or private, that the
// process has named.
func isContextName(name []byte) bool {
	return slices.ContainsFunc([]string{"/memfd:OTEL_CTX", "[anon_shmem:OTEL_CTX]", "[anon:OTEL_CTX]"},
		func(prefix string) bool {
			return bytes.HasPrefix(name, []byte(prefix))
		})
}

// contextHeader is the beginning of the mapping: signature, version and size of the payload (32 bits each), time of the
// publication and address of the payload (64 bits each).
type contextHeader [32]byte

func (h *contextHeader) isSupported() bool {
	const version = 2
	return string(h[:8]) == "OTEL_CTX" && binary.NativeEndian.Uint32(h[8:]) == version
}
func (h *contextHeader) payloadBytes() uint32 { return binary.NativeEndian.Uint32(h[12:]) }
func (h *contextHeader) isComplete() bool     { return binary.NativeEndian.Uint64(h[16:]) != 0 }
func (h *contextHeader) payload() uint64      { return binary.NativeEndian.Uint64(h[24:]) }

// readContextAt reads the context whose header is at an address. The process writes a time of 0 before it changes a
// context, and another time afterwards: the payload is whole if the header is complete and the same before and after.
func readContextAt(memory io.ReaderAt, address uint64, keys []string) Context {
	var payload []byte
	for range maxContextReads {
		var before, after contextHeader
		if !readMemory(memory, before[:], address) {
			return Context{Outcome: ContextUnreadable}
		}
		if !before.isSupported() {
			return Context{Outcome: ContextUnsupported}
		}
		size := before.payloadBytes()
		isRead := false
		if before.isComplete() && size <= maxContextBytes {
			payload = slices.Grow(payload[:0], int(size))[:size]
			isRead = readMemory(memory, payload, before.payload())
		}
		if !before.isComplete() || !readMemory(memory, after[:], address) || before != after {
			continue
		}
		if size > maxContextBytes {
			return Context{Outcome: ContextTooLarge}
		}
		if !isRead {
			return Context{Outcome: ContextUnreadable}
		}
		attributes, ok := parseContext(payload, keys)
		if !ok {
			return Context{Outcome: ContextMalformed}
		}
		return Context{Outcome: ContextRead, Attributes: attributes}
	}
	return Context{Outcome: ContextChanging}
}

func readMemory(memory io.ReaderAt, to []byte, address uint64) bool {
	if address > math.MaxInt64-uint64(len(to)) {
		return false
	}
	_, err := memory.ReadAt(to, int64(address))
	return err == nil
}

// parseContext reads the attributes with the given keys of the resource, which is field 1 of a ProcessContext
// (opentelemetry.proto.processcontext.v1development). Its other field has the keys of thread contexts, which nobody
// reads here.
func parseContext(payload []byte, keys []string) (attributes []Attribute, ok bool) {
	fields := wire.New(payload)
	for fields.Next() {
		if fields.Number != 1 || fields.Wire != protowire.BytesType {
			continue
		}
		for attribute := range wire.Messages(fields.Content, 1) {
			key, value := first(attribute, 1), first(first(attribute, 2), 1) // KeyValue.key, KeyValue.value.string_value
			isNew := !slices.ContainsFunc(attributes, func(a Attribute) bool { return a.Key == string(key) })
			if len(value) > 0 && slices.Contains(keys, string(key)) && isNew {
				attributes = append(attributes, Attribute{Key: string(key), Value: string(value)})
			}
		}
	}
	return attributes, !fields.IsMalformed()
}

// first returns the first content of a field of strings, bytes or messages, or nil.
func first(message []byte, number protowire.Number) []byte {
	for content := range wire.Messages(message, number) {
		return content
	}
	return nil
}
