// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package records

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/otelcol-profiles/otelcol-profiles/internal/pprof/scan"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

const javaStack = `"http-nio-8080-exec "1"" #49 daemon prio=5 os_prio=31 cpu=0.12ms elapsed=8.50s tid=0x00007fde4d00c000 nid=0xba03 waiting on condition  [0x000070000ba40000]
   java.lang.Thread.State: TIMED_WAITING (sleeping)
	at java.lang.Thread.sleep(java.base@11.0.9.1/Native Method)
	- locked <0x000000076ab2c8a8> (a java.lang.Object)
	at com.shop.Cart.total(Cart.java:12)
	at java.lang.Thread.run(java.base@11.0.9.1/Thread.java:834)

   Locked ownable synchronizers:
	- None
`

func TestTextGolden(t *testing.T) {
	for _, tc := range []struct {
		name, body string
		attributes []any
	}{
		{name: "java-basic", body: javaStack, attributes: []any{
			keyFormat, "text", keyType, "cpu", KeySourceType, ProfilingName, keyEventName, "jdk.ThreadDump", keyEventPeriod,
			10_000,
		}},
		{name: "java-allocation", attributes: []any{
			keyFormat, "text", keyType, "allocation", keyAllocated, 4096, keyEventName, "jdk.ObjectAllocationInNewTLAB",
			"sampler.name", "Systematic sampler",
		}, body: "\"main\" #1 nid=0x3\n   java.lang.Thread.State: UNKNOWN\n\tat com.shop.Cart.total(Cart.java:12)\n"},
		{name: "node-empty-header", attributes: []any{
			keyFormat, "text", keyType, "cpu", keyEventPeriod, 1000, keyAllocated, 5,
		}, body: "\n\nat total(/srv/shop/cart.js:12:3)\nat (anonymous)(node:internal/timers:557:17)"},
		{name: "no-header", attributes: []any{keyEventPeriod, 1000},
			body: "\tat total(cart.js:12)\r\n\tat main(cart.js:1)\r\n"},
		{name: "dotnet", attributes: []any{keyFormat, "text", keyType, "cpu", keyEventPeriod, "1000", keyTruncated, true},
			body: "\".NET ThreadPool Worker\" #5 prio=0 os_prio=0 cpu=0 elapsed=0 tid=0x1f nid=0x2b\n\n\tat System.Threading.Thread.Sleep(unknown:0)\n\tat Shop.Cart.Total(System.Int32)(unknown:0)\n"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			ld, record := newRecord(tc.body, tc.attributes...)
			record.SetTimestamp(1_700_000_000_000_000_000)
			record.SetTraceID([16]byte{15: 1})
			record.SetSpanID([8]byte{7: 2})
			result := translated(t, ld, Options{})
			profiletest.Golden(t, filepath.Join("testdata", "golden", "text-"+tc.name+".txt"),
				profiletest.Render(result.Profiles))
		})
	}
}

// Many records of one stack each become one profile with one dictionary, which has every frame once.
func TestTextRecordsBecomeOneProfile(t *testing.T) {
	const records = 500
	ld, first := newRecord(javaStack, keyFormat, "text", keyType, "cpu", keyEventPeriod, 1000)
	first.SetTimestamp(1000)
	sl := ld.ResourceLogs().At(0).ScopeLogs().At(0)
	for i := 1; i < records; i++ {
		body := javaStack + fmt.Sprintf("\tat com.shop.Main.main(Main.java:%d)\n", i%10)
		appendRecord(sl, body, keyFormat, "text", keyType, "cpu", keyEventPeriod, 1000).
			SetTimestamp(pcommon.Timestamp(1000 + i))
	}
	pd := translated(t, ld, Options{}).Profiles
	require.Equal(t, 1, pd.ProfileCount())
	profile := pd.ResourceProfiles().At(0).ScopeProfiles().At(0).Profiles().At(0)
	assert.Equal(t, 11, profile.Samples().Len(), "stacks: one without and ten with a main")
	assert.Equal(t, records, resolvedCounts(pd).samples)
	assert.Equal(t, 1+3+10, pd.Dictionary().LocationTable().Len())
	assert.EqualValues(t, 1000, profile.Time())
	assert.EqualValues(t, records-1+1_000_000_000, profile.DurationNano())
}

// Records that differ in type, period, source or scope become different profiles; equal ones do not.
func TestGroups(t *testing.T) {
	ld, _ := newRecord(javaStack, keyFormat, "text", keyType, "cpu", keyEventPeriod, 1000)
	sl := ld.ResourceLogs().At(0).ScopeLogs().At(0)
	for _, attributes := range [][]any{
		{keyType, "cpu", keyEventPeriod, "1000"},
		{keyType, "cpu", keyEventPeriod, 2000},
		{keyType, "cpu", keyEventPeriod, 1000, keySource, "snapshot"},
		{keyType, "allocation", keyAllocated, 7},
	} {
		appendRecord(sl, javaStack, append(attributes, keyFormat, "text")...)
	}
	same := ld.ResourceLogs().AppendEmpty()
	ld.ResourceLogs().At(0).Resource().CopyTo(same.Resource())
	sl.Scope().CopyTo(same.ScopeLogs().AppendEmpty().Scope())
	appendRecord(same.ScopeLogs().At(0), javaStack, keyType, "cpu", keyEventPeriod, 1000)
	older := same.ScopeLogs().AppendEmpty()
	older.Scope().SetVersion("0.0.9")
	appendRecord(older, javaStack, KeySourceType, ProfilingName, keyType, "cpu", keyEventPeriod, 1000)
	eachRecord(ld, func(record plog.LogRecord) { record.SetTimestamp(1000) })
	pd := translated(t, ld, Options{}).Profiles
	require.Equal(t, 1, pd.ResourceProfiles().Len())
	scopes := pd.ResourceProfiles().At(0).ScopeProfiles()
	require.Equal(t, 2, scopes.Len())
	require.Equal(t, 4, scopes.At(0).Profiles().Len())
	assert.Equal(t, 3, scopes.At(0).Profiles().At(0).Samples().At(0).TimestampsUnixNano().Len())
	assert.Equal(t, 1, scopes.At(1).Profiles().Len())
	ids := map[string]bool{}
	for _, sp := range scopes.All() {
		for _, p := range sp.Profiles().All() {
			ids[p.ProfileID().String()] = true
		}
	}
	assert.Len(t, ids, 5)
}

// Without any time there is none in the output either, and samples are counted.
func TestNoTimes(t *testing.T) {
	ld, _ := newRecord(javaStack, keyFormat, "text", keyType, "cpu")
	appendRecord(ld.ResourceLogs().At(0).ScopeLogs().At(0), javaStack, keyFormat, "text", keyType, "cpu")
	pd := translated(t, ld, Options{}).Profiles
	profile := pd.ResourceProfiles().At(0).ScopeProfiles().At(0).Profiles().At(0)
	require.Equal(t, 1, profile.Samples().Len())
	assert.Equal(t, []int64{2}, profile.Samples().At(0).Values().AsRaw())
	assert.Zero(t, profile.Time())
	assert.Zero(t, profile.DurationNano())
}

func TestTextThatIsNotUTF8(t *testing.T) {
	ld, record := newRecord("\"t\xff\" #1\nst\xffate\nat f\xff(x\xff.js:1)", keyFormat, "text", "k\xff", "v\xff")
	record.Attributes().PutEmptyMap("m").PutStr("\xfe", "\xfe")
	ld.ResourceLogs().At(0).Resource().Attributes().PutEmptySlice("\xff").AppendEmpty().SetStr("\xff")
	ld.ResourceLogs().At(0).ScopeLogs().At(0).Scope().SetVersion("\xff")
	assert.Contains(t, profiletest.Render(translated(t, ld, Options{}).Profiles), "f\uFFFD")
}

func TestTextStackDepth(t *testing.T) {
	ld, _ := newRecord("\n\n"+strings.Repeat("at f(x:1)\n", 8), keyFormat, "text")
	assert.Equal(t, 1, translated(t, ld, Options{Limits: scan.Limits{MaxStackDepth: 8}}).Samples)
	result := Translate(ld, Options{Limits: scan.Limits{MaxStackDepth: 7}})
	require.Len(t, result.Rejected, 1)
	assert.Equal(t, ReasonTooDeep, result.Rejected[0].Reason)
	assert.Zero(t, result.Profiles.Dictionary().StringTable().Len())
}

func TestParseThread(t *testing.T) {
	for line, want := range map[string]thread{
		"": {},
		// The specification's example.
		`"pool-1-thread-30" #49 prio=5 os_prio=31 cpu=0.12ms elapsed=8.50s tid=0x00007fde4d00c000 nid=0xba03 waiting on condition  [0x000070000ba40000]`: {
			name: "pool-1-thread-30", id: 49, osID: 0xba03},
		`"Reference Handler" #2 daemon prio=10 os_prio=0 tid=0x00007fde4d00c000 nid=0x7 runnable #3`: {
			name: "Reference Handler", id: 2, osID: 7},
		// Since Java 19 the native id is decimal, and is also next to the number.
		`"main" #1 [12345] prio=5 os_prio=0 cpu=61.35ms elapsed=1.02s tid=0x1 nid=12345 waiting`: {
			name: "main", id: 1, osID: 12345},
		`"a "quoted" name #3 of many" #12 nid=0x1f`:                     {name: `a "quoted" name #3 of many`, id: 12, osID: 0x1f},
		`"of " #3 of many" #12 nid=0x1f`:                                {name: `of " #3 of many`, id: 12, osID: 0x1f},
		`"no number"`:                                                   {name: "no number"},
		`"" #5 prio=0 os_prio=0 cpu=0 elapsed=0 tid=0x0 nid=0x2`:        {id: 5, osID: 2},
		`"VM Thread" os_prio=0 tid=0xffffffffffffffff nid=0x2 runnable`: {name: "VM Thread", osID: 2},
		`#7 cpu=1.5us elapsed=2m`:                                       {id: 7},
		`"unclosed #7`:                                                  {},
		`"x" #y prio=high cpu=1e400s elapsed=-1s tid=0xzz nid=`:         {name: "x"},
		`"x" nid=99999999999999999999 nid=1`:                            {name: "x"},
	} {
		assert.Equal(t, want, parseThread(line), line)
	}
}
