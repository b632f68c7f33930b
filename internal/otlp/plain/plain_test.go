// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package plain

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/messages"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/wire"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

func sent(t testing.TB) (pd pprofile.Profiles, marshalled []byte) {
	pd = profiletest.New().Resource("service.name", "shop", "empty", "", "port", 8080).Scope("scope", "1").
		Profile("samples", "count").Time(1_000, 5_000).Sample(profiletest.Observed([]uint64{1_000}, "leaf", "main")).Build()
	rp := pd.ResourceProfiles().At(0)
	inner := rp.Resource().Attributes().PutEmptyMap("map")
	inner.PutStr("text", strings.Repeat("long", 100))
	inner.PutEmptySlice("array").AppendEmpty().SetStr("element")
	rp.ScopeProfiles().At(0).Scope().Attributes().PutStr("profile_name", "memory")
	return pd, profiletest.Marshal(t, pd)
}

// hasReferences reports whether a message has references where Rewrite resolves them.
func hasReferences(data []byte, m *messages.Message) bool {
	for fields := wire.New(data); fields.Next(); {
		known := m.Field(fields.Number, fields.Wire)
		if known != nil && (known.Kind == messages.Strindex ||
			mayRefer(known.Message) && hasReferences(fields.Content, known.Message)) {
			return true
		}
	}
	return false
}

func TestRewrite(t *testing.T) {
	pd, marshalled := sent(t)
	require.True(t, hasReferences(marshalled, messages.Profiles))
	plain, err := Rewrite(marshalled)
	require.NoError(t, err)
	assert.False(t, hasReferences(plain, messages.Profiles))
	got := profiletest.Unmarshal(t, plain)
	for i, rp := range pd.ResourceProfiles().All() {
		assert.Equal(t, rp.Resource().Attributes().AsRaw(), got.ResourceProfiles().At(i).Resource().Attributes().AsRaw())
		for j, sp := range rp.ScopeProfiles().All() {
			scope := got.ResourceProfiles().At(i).ScopeProfiles().At(j)
			assert.Equal(t, sp.Scope().Attributes().AsRaw(), scope.Scope().Attributes().AsRaw())
			assert.Equal(t, sp.Profiles(), scope.Profiles())
		}
	}
	again, err := Rewrite(plain)
	require.NoError(t, err)
	assert.Equal(t, plain, again)
}

func field(number protowire.Number, content ...[]byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(nil, number, protowire.BytesType), bytes.Join(content, nil))
}

func TestRewriteHostile(t *testing.T) {
	const (
		resourceProfiles, dictionary, resource, attributes, stringTable = 1, 2, 1, 1, 5
		attributeValue, attributeKeyIndex, valueArray, elements         = 2, 3, 5, 1
	)
	reference := protowire.AppendVarint(protowire.AppendTag(nil, attributeKeyIndex, protowire.VarintType), 1)
	attribute := field(attributes, reference)
	nested := []byte{}
	for range maxDepth {
		nested = field(valueArray, field(elements, nested))
	}
	in := func(content []byte) []byte { return field(resourceProfiles, field(resource, content)) }
	long := field(dictionary, field(stringTable), field(stringTable, bytes.Repeat([]byte("x"), 1<<20)))
	for name, tc := range map[string]struct {
		message []byte
		want    string
	}{
		"out of range": {in(attribute), "string reference 1 is out of range [0..0)"},
		"malformed": {in([]byte{0x0a, 0x7f}),
			"malformed message: the last 2 of 2 bytes cannot be read"},
		"nested": {in(field(attributes, field(attributeValue, nested))),
			"nested more than 100 deep"},
		"a text of a megabyte, many times": {append(in(bytes.Repeat(attribute, 1<<16)), long...),
			"more than 32 times as large"},
	} {
		t.Run(name, func(t *testing.T) {
			var err error
			profiletest.RequireCost(t, profiletest.BoundOf(len(tc.message), 16<<20, 128), func() {
				_, err = Rewrite(tc.message)
			})
			require.ErrorContains(t, err, tc.want)
		})
	}
}

func FuzzRewrite(f *testing.F) {
	_, marshalled := sent(f)
	f.Add(marshalled)
	f.Fuzz(func(t *testing.T, data []byte) {
		plain, err := Rewrite(data)
		if err == nil {
			require.LessOrEqual(t, len(plain), (maxGrowth+2)*len(data)+minRoom)
			again, err := Rewrite(plain)
			require.NoError(t, err)
			require.Equal(t, plain, again)
		}
	})
}
