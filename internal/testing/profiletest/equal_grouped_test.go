// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profiletest

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestIgnoreOrder(t *testing.T) {
	want := New().
		Resource("service.name", "a").Scope("s", "1").
		Profile("cpu", "ns").Sample(Value(1, "x")).
		Profile("cpu", "ns").Sample(Value(2, "x")).
		Resource("service.name", "b").Scope("s", "1").
		Profile("wall", "ns").Sample(Value(3, "x")).Build()
	got := New().
		Resource("service.name", "b").Scope("s", "1").
		Profile("wall", "ns").Sample(Value(3, "x")).
		Resource("service.name", "a").Scope("s", "1").
		Profile("cpu", "ns").Sample(Value(2, "x")).
		Resource("service.name", "a").Scope("s", "1").
		Profile("cpu", "ns").Sample(Value(1, "x")).Build()
	require.Error(t, Equal(want, got))
	require.NoError(t, Equal(want, got, IgnoreOrder()))
	require.NoError(t, Equal(want, got, MergeProfiles()))

	ProfileAt(got, 1).Samples().At(0).Values().SetAt(0, 4)
	require.EqualError(t, Equal(want, got, IgnoreOrder()),
		`resource {service.name="a"} scope s 1 profile, sample_type cpu in ns: sample <x>: is 4, want 2`)
	require.EqualError(t, Equal(want, got, MergeProfiles()),
		`resource {service.name="a"} scope s 1 profile, sample_type cpu in ns: sample <x>: is 5, want 3`)

	got.ResourceProfiles().At(0).ScopeProfiles().At(0).Scope().SetVersion("2")
	ProfileAt(got, 1).Samples().At(0).Values().SetAt(0, 2)
	require.EqualError(t, Equal(want, got, IgnoreOrder()),
		"resource {service.name=\"b\"} scope s 1 profile, sample_type wall in ns: has 0 elements, want 1\n"+
			"resource {service.name=\"b\"} scope s 2 profile, sample_type wall in ns: has 1 elements, want 0")
}

func TestIgnoreOrderCountsEqualProfiles(t *testing.T) {
	once := New().Profile("cpu", "ns").Sample(Value(1, "x")).Build()
	twice := New().Profile("cpu", "ns").Sample(Value(1, "x")).Profile("cpu", "ns").Sample(Value(1, "x")).Build()
	require.EqualError(t, Equal(once, twice, IgnoreOrder()),
		`resource {} scope "" "" profile, sample_type cpu in ns: has 2 elements, want 1`)
}

func TestMergeProfilesMergesASplitProfile(t *testing.T) {
	want := New().Profile("cpu", "ns").Payload("pprof", []byte("bytes")).Sample(Value(1, "x"), Value(2, "y"),
		Value(4, "z")).Build()
	got := New().
		Profile("cpu", "ns").Payload("pprof", []byte("bytes")).Sample(Value(1, "x")).
		Profile("cpu", "ns").Sample(Value(2, "y"), Value(4, "z")).Build()
	require.Error(t, Equal(want, got, IgnoreOrder()))
	require.NoError(t, Equal(want, got, MergeProfiles()))

	ProfileAt(got, 0).OriginalPayload().FromRaw(nil)
	require.EqualError(t, Equal(want, got, MergeProfiles()),
		`resource {} scope "" "" profile, sample_type cpu in ns.original_payload: the 0 payloads differ from the 1 wanted`)

	got = New().Profile("cpu", "ns").Time(1, 0).Sample(Value(1, "x"), Value(2, "y"), Value(4, "z")).Build()
	require.ErrorContains(t, Equal(want, got, MergeProfiles()), "time 1 ns: has 1 elements, want 0")
}
