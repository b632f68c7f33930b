// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package procfs

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

func message(number protowire.Number, content ...string) string {
	return string(protowire.AppendBytes(protowire.AppendTag(nil, number, protowire.BytesType),
		[]byte(strings.Join(content, ""))))
}

// text returns a KeyValue with a text as value.
func text(key, value string) string { return message(1, key) + message(2, message(1, value)) }

// resource returns a ProcessContext whose resource has these attributes.
func resource(attributes ...string) string {
	var content string
	for _, attribute := range attributes {
		content += message(1, attribute)
	}
	return message(1, content)
}

// header returns the header of a context.
func header(version, size uint32, published, payload uint64) string {
	h := binary.NativeEndian.AppendUint32([]byte("OTEL_CTX"), version)
	h = binary.NativeEndian.AppendUint32(h, size)
	h = binary.NativeEndian.AppendUint64(h, published)
	return string(binary.NativeEndian.AppendUint64(h, payload))
}

const contextLine = "00001000-00002000 rw-p 00000000 00:01 1032       /memfd:OTEL_CTX (deleted)\n"

// readFake reads the context of a process with these mappings, and this content of its memory from contextLine's
// address on.
func readFake(t *testing.T, maps, memory string) Context {
	root, _ := processDir(t, map[string]string{"stat": stat, "maps": maps, "mem": strings.Repeat("\x00", 0x1000) + memory})
	process, err := (&Reader{Root: root, MaxFileBytes: 4096, ContextKeys: []string{"service.name", "service.version"}}).
		Read(7)
	require.NoError(t, err)
	return process.Context
}

// published returns a mapping whose payload follows the header.
func published(payload string) string {
	return header(2, uint32(len(payload)), 1, 0x1000+32) + payload
}

func TestReadContext(t *testing.T) {
	const code = "00400000-00401000 r-xp 00000000 08:01 17       /usr/bin/a\n"
	shop := text("service.name", "shop")
	want := []Attribute{{"service.name", "shop"}}
	for name, tc := range map[string]struct {
		maps, memory string
		outcome      ContextOutcome
		want         []Attribute
	}{
		"a resource": {code + contextLine, published(resource(shop)), ContextRead, want},
		"with other attributes": {contextLine, published(resource(text("a", "b"), shop) + message(2, text("x", "y"))),
			ContextRead, want},
		"beside the resource": {contextLine, published(resource(text("a", "b")) + message(2, shop)), ContextRead, nil},
		"in another field": {contextLine, published(message(2, message(1, shop)) + message(3, message(1, shop))),
			ContextRead, nil},
		"two of one key": {contextLine, published(resource(shop, text("service.name", "other"))), ContextRead, want},
		"two resources": {contextLine, published(resource(shop) + resource(text("service.name", "other"))),
			ContextRead, want},
		"a number as name": {contextLine, published(resource(message(1, "service.name") + message(2, "\x18\x01"))),
			ContextRead, nil},
		"no attributes": {contextLine, published(""), ContextRead, nil},
		"anonymous memory": {strings.Replace(contextLine, "/memfd:OTEL_CTX (deleted)", "[anon_shmem:OTEL_CTX]", 1),
			published(resource(shop)), ContextRead, want},
		"private memory": {strings.Replace(contextLine, "/memfd:OTEL_CTX (deleted)", "[anon:OTEL_CTX]", 1),
			published(resource(shop)), ContextRead, want},
		"no mapping": {code, published(resource(shop)), ContextNone, nil},
		"another name": {strings.Replace(contextLine, "/memfd:", "/tmp/", 1), published(resource(shop)),
			ContextNone, nil},
		"a mapping without name": {"00001000-00002000 rw-p 00000000 00:01 OTEL_CTX\n", published(resource(shop)),
			ContextNone, nil},
		"without rights": {strings.Replace(contextLine, "rw-p", "---p", 1), published(resource(shop)), ContextNone,
			nil},
		"an address of text": {"OTEL" + contextLine, published(resource(shop)), ContextNone, nil},
		"address above memory": {"fffffffffffff000-ffffffffffffffff r--p 0 00:01 1 /memfd:OTEL_CTX\n",
			published(resource(shop)), ContextUnreadable, nil},
		"another signature": {contextLine, strings.Replace(published(resource(shop)), "CTX", "XYZ", 1),
			ContextUnsupported, nil},
		"version 1": {contextLine, header(1, 0, 1, 0), ContextUnsupported, nil},
		"the second is one": {strings.Replace(contextLine, "00001000", "00000000", 1) + contextLine,
			published(resource(shop)), ContextRead, want},
		"the first is unreadable": {strings.Replace(contextLine, "00001000", "00800000", 1) + contextLine,
			published(resource(shop)), ContextRead, want},
		"an unfinished header": {contextLine, header(2, 0, 0, 0), ContextChanging, nil},
		"half a header":        {contextLine, "OTEL_CTX", ContextUnreadable, nil},
		"the largest size":     {contextLine, header(2, math.MaxUint32, 1, 0x1000), ContextTooLarge, nil},
		"one byte too large": {contextLine, published(strings.Repeat("\x08\x00", maxContextBytes/2) + "\x08"),
			ContextTooLarge, nil},
		"payload without memory": {contextLine, header(2, 8, 1, 1<<40), ContextUnreadable, nil},
		"payload at the end":     {contextLine, header(2, 8, 1, math.MaxUint64), ContextUnreadable, nil},
		"payload below zero":     {contextLine, header(2, 8, 1, 1<<63), ContextUnreadable, nil},
		"payload is the header":  {contextLine, header(2, 32, 1, 0x1000), ContextMalformed, nil},
		"a field that ends late": {contextLine, published(resource(shop) + "\x0a\x7f"), ContextMalformed, nil},
		"not UTF-8": {contextLine, published(resource(text("service.name", "a\xff"))), ContextRead,
			[]Attribute{{"service.name", "a\xff"}}},
		"a mapping too far down": {strings.Repeat(code, 1+maxMapsBytes/len(code)) + contextLine, published(resource(shop)),
			ContextNone, nil},
	} {
		t.Run(name, func(t *testing.T) {
			got := readFake(t, tc.maps, tc.memory)
			assert.Equal(t, tc.outcome.String(), got.Outcome.String())
			assert.Equal(t, tc.want, got.Attributes)
		})
	}
	assert.Equal(t, Context{}, readFake(t, "", ""))
}

// Without the memory there is no context, and without keys nobody looks for one.
func TestReadContextWithoutRights(t *testing.T) {
	root, _ := processDir(t, map[string]string{"stat": stat, "maps": contextLine})
	reader := Reader{Root: root, MaxFileBytes: 4096, ContextKeys: []string{"service.name"}}
	process, err := reader.Read(7)
	require.NoError(t, err)
	assert.Equal(t, Context{Outcome: ContextUnreadable}, process.Context)
	reader.ContextKeys = nil
	process, err = reader.Read(7)
	require.NoError(t, err)
	assert.Equal(t, Context{}, process.Context)
}

// changing is memory whose content is another one at each reading.
type changing struct {
	contents []string
	reads    int
}

func (c *changing) ReadAt(to []byte, offset int64) (int, error) {
	content := c.contents[min(c.reads, len(c.contents)-1)]
	c.reads++
	if offset > int64(len(content)) {
		return 0, errors.New("no memory")
	}
	return io.NewSectionReader(strings.NewReader(content), 0, math.MaxInt64).ReadAt(to, offset)
}

// A context that the process writes at the same time is read again, and never half.
func TestReadContextWhileItChanges(t *testing.T) {
	content := func(published uint64, name string) string {
		payload := resource(text("service.name", name))
		return header(2, uint32(len(payload)), published, 32) + payload
	}
	old, updated := content(1, "old"), content(2, "updated")
	beingWritten := content(0, "half")
	keys := []string{"service.name"}
	for name, tc := range map[string]struct {
		contents []string
		want     string
	}{
		"nothing changes":          {[]string{old}, "old"},
		"changed after the header": {[]string{old, updated}, "updated"},
		"changed at the end":       {[]string{old, old, updated}, "updated"},
		"being written at first":   {[]string{beingWritten, updated}, "updated"},
		"being written at the end": {[]string{old, old, beingWritten, updated}, "updated"},
		"larger for the moment":    {[]string{header(2, math.MaxUint32, 1, 32), updated}, "updated"},
		"no memory for the moment": {[]string{header(2, 8, 1, 1<<40), updated}, "updated"},
		"always":                   {[]string{old, updated, updated, updated, old, old, old, updated, updated}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			memory := &changing{contents: tc.contents}
			got := readContextAt(memory, 0, keys)
			assert.LessOrEqual(t, memory.reads, 3*maxContextReads)
			if tc.want == "" {
				assert.Equal(t, Context{Outcome: ContextChanging}, got)
				return
			}
			assert.Equal(t, Context{Outcome: ContextRead, Attributes: []Attribute{{"service.name", tc.want}}}, got)
		})
	}
}

// What a process publishes costs at most what the bounds allow.
func TestReadContextIsBounded(t *testing.T) {
	const limit = maxMapsBytes + maxContextBytes
	var many bytes.Buffer
	for i := 0; many.Len() < 16<<20; i++ {
		many.WriteString(resource(text(fmt.Sprint("a", i), "b")))
	}
	worst := map[string]struct{ maps, memory string }{
		"a million attributes": {contextLine, published(many.String())},
		"as many as there may be": {contextLine,
			published(strings.Repeat(resource(text("", "")), maxContextBytes/len(resource(text("", "")))))},
		"of one key":       {contextLine, published(strings.Repeat(resource(text("service.name", "a")), 2000))},
		"nested":           {contextLine, published(message(1, strings.Repeat("\x0a\x00", maxContextBytes/2-8)))},
		"the largest size": {contextLine, header(2, math.MaxUint32, 1, 0x1000)},
		"a long line":      {strings.Repeat("x", 64<<20) + contextLine, ""},
		"many contexts":    {strings.Repeat(contextLine, 100_000), strings.Repeat("x", 64<<10)},
	}
	for name, tc := range worst {
		t.Run(name, func(t *testing.T) {
			root, dir := processDir(t, map[string]string{"stat": stat, "maps": tc.maps})
			require.NoError(t, os.WriteFile(filepath.Join(dir, "mem"), []byte(strings.Repeat("\x00", 0x1000)+tc.memory), 0o600))
			reader := Reader{Root: root, MaxFileBytes: 4096, ContextKeys: []string{"service.name"}}
			var process Process
			profiletest.RequireCost(t, profiletest.BoundOf(limit, 4<<20, 64), func() { process, _ = reader.Read(7) })
			assert.LessOrEqual(t, len(process.Context.Attributes), 1)
		})
	}
}

// Only a few of a process's mappings with the name are looked at.
func TestManyContexts(t *testing.T) {
	assert.Len(t, findContexts(strings.NewReader(strings.Repeat(contextLine, 100))), maxContextMappings)
}

func FuzzReadContext(f *testing.F) {
	f.Add(contextLine, published(resource(text("service.name", "shop"))))
	f.Add(contextLine, header(2, 32, 1, 0x1000))
	f.Fuzz(func(t *testing.T, maps, memory string) {
		for _, address := range findContexts(strings.NewReader(maps)) {
			got := readContextAt(strings.NewReader(memory), address%4096, []string{"service.name"})
			require.True(t, got.Outcome == ContextRead || got.Attributes == nil)
			require.LessOrEqual(t, len(got.Attributes), 1)
		}
		_, _ = parseContext([]byte(memory), []string{"service.name"})
	})
}
