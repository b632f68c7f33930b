// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package querier

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/google/pprof/profile"
	profilev1 "github.com/grafana/pyroscope/api/gen/proto/go/google/v1"
	pushv1 "github.com/grafana/pyroscope/api/gen/proto/go/push/v1"
	"github.com/grafana/pyroscope/api/gen/proto/go/push/v1/pushv1connect"
	querierv1 "github.com/grafana/pyroscope/api/gen/proto/go/querier/v1"
	"github.com/grafana/pyroscope/api/gen/proto/go/querier/v1/querierv1connect"
	typesv1 "github.com/grafana/pyroscope/api/gen/proto/go/types/v1"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/collectortest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/collectortest/pyroscopetest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

// The answers of a real Pyroscope, whose server E2E_PYROSCOPE_SERVER names, are those of a store that has the same
// profiles.
func TestAnswersAreThoseOfPyroscope(t *testing.T) {
	binary := os.Getenv("E2E_PYROSCOPE_SERVER")
	if binary == "" {
		t.Skip("E2E_PYROSCOPE_SERVER names no server")
	}
	seed := uint64(time.Now().UnixNano())
	if text := os.Getenv("ORACLE_SEED"); text != "" {
		seed, _ = strconv.ParseUint(text, 10, 64)
	}
	t.Logf("ORACLE_SEED=%d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	now := time.Now().Truncate(time.Second)
	list := append(history(r, now, 40), captured(t, now)...)
	address := startPyroscope(t, binary)
	push(t, address, list)
	s := newStore()
	keep(t, s, withoutTypes(t, list), now)
	ours, ourAddress := client(t, s.Querier, now)
	theirs := querierv1connect.NewQuerierServiceClient(http.DefaultClient, address)
	waitFor(t, theirs, now)
	t.Run("profilecli", func(t *testing.T) { compareProfilecli(t, address, ourAddress, now) })

	const (
		queries = 1000
		shown   = 5
	)
	of := map[string]*outcome{}
	var sum outcome
	for i := range queries {
		q := randomQuery(r, now)
		o := of[q.name]
		if o == nil {
			o = &outcome{answers: map[string]bool{}, tolerated: map[string]int{}}
			of[q.name] = o
		}
		start := time.Now()
		want, err := q.ask(t.Context(), theirs)
		o.theirs = append(o.theirs, time.Since(start))
		require.NoError(t, err, "%d %s", i, q)
		start = time.Now()
		got, err := q.ask(t.Context(), ours)
		o.ours = append(o.ours, time.Since(start))
		require.NoError(t, err, "%d %s", i, q)
		o.answers[fmt.Sprint(want)] = true
		if reason := compare(want, got); reason == "" {
			o.equal++
		} else if reason != different {
			o.tolerated[reason]++
		} else if o.different++; sum.different+o.different <= shown {
			assert.Equal(t, want, got, "query %d: %s", i, q)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(of)) {
		o := of[name]
		slices.Sort(o.theirs)
		slices.Sort(o.ours)
		theirs, ours := o.theirs[len(o.theirs)/2], o.ours[len(o.ours)/2]
		t.Logf("%s: %d equal, %v tolerated, %d different, %d answers; median: Pyroscope %s, the store %s, ratio %.1f",
			name, o.equal, o.tolerated, o.different, len(o.answers), theirs, ours, float64(theirs)/float64(ours))
		sum.equal, sum.different = sum.equal+o.equal, sum.different+o.different
	}
	t.Logf("%d queries: %d equal, %d tolerated, %d different", queries, sum.equal, queries-sum.equal-sum.different,
		sum.different)
	assert.Zero(t, sum.different)
}

// compareProfilecli compares what Pyroscope's command line, which E2E_PROFILECLI names, prints of both.
func compareProfilecli(t *testing.T, theirs, ours string, now time.Time) {
	binary := os.Getenv("E2E_PROFILECLI")
	if binary == "" {
		t.Skip("E2E_PROFILECLI names no command")
	}
	run := func(t *testing.T, address string, args []string) string {
		cmd := exec.CommandContext(t.Context(), binary, slices.Concat(args, []string{"--url=" + address,
			fmt.Sprintf("--from=%d", now.Add(-time.Hour).Unix()), fmt.Sprintf("--to=%d", now.Unix())})...)
		var problems bytes.Buffer
		cmd.Dir, cmd.Stderr = t.TempDir(), &problems
		out, err := cmd.Output()
		require.NoError(t, err, "%v: %s", args, problems.Bytes())
		return string(out)
	}
	lines := func(t *testing.T, address string, args []string) any {
		list := strings.Split(run(t, address, args), "\n")
		slices.Sort(list)
		return slices.DeleteFunc(list, func(line string) bool {
			// Names that are not ASCII, and those that only Pyroscope has, are in docs/grafana.md.
			return strings.Contains(line, "größe") || strings.Contains(line, "gr__e") ||
				strings.Contains(line, "__service_name__")
		})
	}
	// Which of two exemplars with one value is shown is open, and so are their ids and labels.
	values := func(t *testing.T, address string, args []string) any {
		var found struct{ Exemplars []struct{ Value int64 } }
		require.NoError(t, json.Unmarshal([]byte(run(t, address, append(args, "--output=json"))), &found))
		require.NotEmpty(t, found.Exemplars)
		return found
	}
	stacks := func(t *testing.T, address string, args []string) any {
		file := filepath.Join(t.TempDir(), "pprof")
		run(t, address, append(args, "--output=pprof="+file))
		payload := profiletest.FileBytes(t, file)
		p := profiletest.ParsePprof(t, payload)
		require.NotEmpty(t, p.Sample)
		return stacksText(p)
	}
	for _, c := range []struct {
		args []string
		ask  func(t *testing.T, address string, args []string) any
	}{
		{[]string{"query", "series", "--query={region=\"eu\"}", "--label-names=pod"}, lines},
		{[]string{"query", "series", "--label-names=service_name", "--label-names=__profile_type__"}, lines},
		{[]string{"query", "profile", "--query={service_name=\"shop-0\"}"}, stacks},
		{[]string{"query", "profile", "--query={service_name=\"shop-1\"}", "--function-names-only"}, stacks},
		{[]string{"query", "profile", "--query={service_name=\"captured-go-cpu-labels\"}"}, stacks},
		{[]string{"query", "go-pgo", "--query={service_name=\"captured-go-cpu-labels\"}", "--keep-locations=3",
			"--no-aggregate-callees"}, stacks},
		{[]string{"query", "top", "--output=json"}, lines},
		{[]string{"query", "top", "--label-names=pod", "--profile-type=memory:inuse_space:bytes:space:bytes"}, lines},
		{[]string{"query", "exemplars", "profile"}, values},
		{[]string{"query", "exemplars", "span"}, values},
		{[]string{"query", "label-values-cardinality"}, lines},
	} {
		t.Run(strings.Join(c.args[1:], " "), func(t *testing.T) {
			assert.Equal(t, c.ask(t, theirs, c.args), c.ask(t, ours, c.args))
		})
	}
}

// outcome counts the queries of one kind.
type outcome struct {
	// answers are the different ones: many empty ones that are equal would prove little.
	answers          map[string]bool
	equal, different int
	// tolerated has the differences that docs/grafana.md lists, by reason.
	tolerated    map[string]int
	theirs, ours []time.Duration
}

const different = "different"

// compare returns why two answers differ, or "". A reason that is not different is one of the differences that
// docs/grafana.md lists.
func compare(want, got any) (reason string) {
	if assert.ObjectsAreEqual(want, got) {
		return ""
	}
	wanted, isLines := want.([]string)
	found, alsoLines := got.([]string)
	if !isLines || !alsoLines {
		return different
	}
	// Lines are sorted: a set without labels, and a sample without a stack, are the first.
	switch {
	case len(wanted) > 0 && wanted[0] == "" && slices.Equal(wanted[1:], found):
		return "a set of Series without labels"
	case len(found) > 0 && strings.HasPrefix(found[0], " ") && slices.Equal(wanted, found[1:]):
		return "a sample without a stack in a pprof"
	default:
		return different
	}
}

// withoutTypes returns profiles whose names of Go's generic functions have no type parameters, as Pyroscope keeps them.
func withoutTypes(t testing.TB, list []pushed) []pushed {
	list = slices.Clone(list)
	for i := range list {
		p := profiletest.ParsePprof(t, list[i].payload)
		for _, f := range p.Function {
			f.Name, f.SystemName = withoutShapes(f.Name), withoutShapes(f.SystemName)
		}
		var b bytes.Buffer
		require.NoError(t, p.Write(&b))
		list[i].payload = b.Bytes()
	}
	return list
}

func withoutShapes(name string) string {
	for {
		start := strings.Index(name, "[go.shape.")
		if start < 0 {
			return name
		}
		end, depth := start, 0
		for ; end < len(name); end++ {
			switch name[end] {
			case '[':
				depth++
			case ']':
				depth--
			}
			if depth == 0 {
				break
			}
		}
		name = name[:start] + name[min(end+1, len(name)):]
	}
}

// startPyroscope starts a server, and returns its URL.
func startPyroscope(t testing.TB, binary string) string {
	server := pyroscopetest.NewReal(t, binary, strings.Fields(os.Getenv("E2E_PYROSCOPE_FLAGS"))...)
	server.Start(t)
	return server.URL
}

func push(t testing.TB, address string, list []pushed) {
	c := pushv1connect.NewPusherServiceClient(http.DefaultClient, address)
	var pushes errgroup.Group
	pushes.SetLimit(8) // each waits for a segment to be written
	for chunk := range slices.Chunk(list, 50) {
		in := &pushv1.PushRequest{}
		for _, p := range chunk {
			series := &pushv1.RawProfileSeries{Samples: []*pushv1.RawSample{{RawProfile: p.payload}}}
			labels := maps.Clone(p.labels)
			labels["__name__"], labels["__delta__"] = p.name, "false"
			for _, name := range slices.Sorted(maps.Keys(labels)) {
				series.Labels = append(series.Labels, &typesv1.LabelPair{Name: name, Value: labels[name]})
			}
			in.Series = append(in.Series, series)
		}
		pushes.Go(func() error {
			_, err := c.Push(t.Context(), connect.NewRequest(in))
			return err
		})
	}
	require.NoError(t, pushes.Wait())
}

// waitFor waits until everything that was pushed can be read.
func waitFor(t testing.TB, c querierv1connect.QuerierServiceClient, now time.Time) {
	before := int64(-1)
	require.Eventually(t, func() bool {
		total := int64(0)
		for _, id := range typeIDs() {
			got, err := c.SelectMergeStacktraces(t.Context(), connect.NewRequest(&querierv1.SelectMergeStacktracesRequest{
				ProfileTypeID: id, LabelSelector: "{}", Start: now.Add(-time.Hour).UnixMilli(), End: now.UnixMilli(),
			}))
			if err != nil {
				return false
			}
			total += got.Msg.GetFlamegraph().GetTotal()
		}
		isSame := total == before && total > 0
		before = total
		return isSame
	}, time.Minute, 2*time.Second)
}

// question is a query to both.
type question struct {
	name string
	text any
	ask  func(ctx context.Context, c querierv1connect.QuerierServiceClient) (any, error)
}

func (q question) String() string { return fmt.Sprintf("%s %v", q.name, q.text) }

// asked is a question of one call, of whose answer show returns what is compared.
func asked[In, Out any](
	call func(calls, context.Context, *connect.Request[In]) (*connect.Response[Out], error),
	in *In, show func(*Out) (any, error),
) question {
	name := strings.TrimSuffix(strings.TrimPrefix(fmt.Sprintf("%T", in), "*"), "Request")
	return question{
		name[strings.IndexByte(name, '.')+1:], in,
		func(ctx context.Context, c querierv1connect.QuerierServiceClient) (any, error) {
			out, err := call(c, ctx, connect.NewRequest(in))
			if err != nil {
				return nil, err
			}
			return show(out.Msg)
		},
	}
}

type calls = querierv1connect.QuerierServiceClient

// randomQuery returns a query whose answer does not depend on how Pyroscope prunes, or on blocks. docs/grafana.md lists
// what still differs.
func randomQuery(r *rand.Rand, now time.Time) question {
	start := now.Add(-time.Duration(r.IntN(12*60_000)) * time.Millisecond).UnixMilli()
	end := start + int64(r.IntN(10*60_000))
	if r.IntN(3) == 0 {
		start, end = now.Add(-time.Hour).UnixMilli(), now.UnixMilli()
	}
	ids := append(typeIDs(), "goroutine:goroutine:count:goroutine:count", "block:delay:nanoseconds:contentions:count")
	id := ids[r.IntN(len(ids))]
	selector := randomSelector(r)
	pick := func(list ...string) string { return list[r.IntN(len(list))] }
	names := []string{"service_name", "pod", "region", "service_version", "endpoint", "nothing"}
	r.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	by := names[:r.IntN(4)]
	whole := []int64{now.Add(-time.Hour).UnixMilli(), now.UnixMilli()}
	const nodes = 100_000
	most, cut := int64(nodes), int64(1+r.IntN(200))
	stacks := &querierv1.SelectMergeStacktracesRequest{ProfileTypeID: id, LabelSelector: selector, Start: start, End: end,
		MaxNodes: &most}
	switch r.IntN(12) {
	case 0:
		return asked(calls.ProfileTypes, &querierv1.ProfileTypesRequest{Start: whole[0], End: whole[1]}, asJSON)
	case 1:
		in := &typesv1.LabelNamesRequest{Start: whole[0], End: whole[1], Matchers: []string{selector}}
		return asked(calls.LabelNames, in, func(out *typesv1.LabelNamesResponse) (any, error) {
			return slices.DeleteFunc(out.Names, isInternal), nil
		})
	case 2:
		in := &typesv1.LabelValuesRequest{Name: pick(append(names, "__profile_type__", "__name__", "__type__")...),
			Start: whole[0], End: whole[1], Matchers: []string{selector}}
		return asked(calls.LabelValues, in, func(out *typesv1.LabelValuesResponse) (any, error) {
			return strings.Join(out.Names, ","), nil
		})
	case 3:
		in := &querierv1.SeriesRequest{LabelNames: by, Start: whole[0], End: whole[1], Matchers: []string{selector}}
		if r.IntN(2) == 0 {
			in.Matchers, in.LabelNames = nil, []string{"service_name", "__profile_type__"}
		}
		return asked(calls.Series, in, func(out *querierv1.SeriesResponse) (any, error) {
			var sets []string
			for _, l := range out.LabelsSet {
				l.Labels = slices.DeleteFunc(l.Labels, func(p *typesv1.LabelPair) bool { return isInternal(p.Name) })
				sets = append(sets, labelText(l.Labels))
			}
			slices.Sort(sets)
			return slices.Compact(sets), nil
		})
	case 4, 5:
		in := &querierv1.SelectSeriesRequest{ProfileTypeID: id, LabelSelector: selector, Start: start, End: end, GroupBy: by,
			Step: []float64{0.5, 1, 15, 60, 7.25}[r.IntN(5)]}
		if r.IntN(3) == 0 {
			limit := int64(1 + r.IntN(3))
			in.Limit = &limit
		}
		return asked(calls.SelectSeries, in, pointsOf)
	case 6:
		in := &querierv1.SelectHeatmapRequest{
			ProfileTypeID: id, LabelSelector: selector, Start: start, End: end + 1, GroupBy: by,
			Step:      []float64{1, 15, 60}[r.IntN(3)],
			QueryType: querierv1.HeatmapQueryType(1 + r.IntN(2)),
		}
		return asked(calls.SelectHeatmap, in, func(out *querierv1.SelectHeatmapResponse) (any, error) {
			var lines []string
			for _, s := range out.Series {
				for _, slot := range s.Slots {
					lines = append(lines, fmt.Sprint(labelText(s.Labels), slot.Timestamp, slot.YMin, slot.Counts))
				}
			}
			slices.Sort(lines)
			return lines, nil
		})
	case 7:
		right := &querierv1.SelectMergeStacktracesRequest{ProfileTypeID: id, LabelSelector: randomSelector(r),
			Start: whole[0], End: whole[1], MaxNodes: &most}
		return asked(calls.Diff, &querierv1.DiffRequest{Left: stacks, Right: right},
			func(out *querierv1.DiffResponse) (any, error) {
				f := out.Flamegraph
				return fmt.Sprint(f.Total, f.MaxSelf, f.LeftTicks, f.RightTicks, "\n",
					strings.Join(levelPaths(f.Names, f.Levels, 7), "\n")), nil
			})
	case 8:
		in := &querierv1.SelectMergeSpanProfileRequest{ProfileTypeID: id, LabelSelector: selector, Start: start, End: end,
			MaxNodes: &most}
		for range 1 + r.IntN(3) {
			in.SpanSelector = append(in.SpanSelector, fmt.Sprintf("%016x", 1+r.IntN(5)))
		}
		//nolint:staticcheck // Grafana's data source calls it
		return asked(calls.SelectMergeSpanProfile, in, func(out *querierv1.SelectMergeSpanProfileResponse) (any, error) {
			return flameText(out.Flamegraph), nil
		})
	case 9:
		in := &querierv1.SelectMergeProfileRequest{ProfileTypeID: id, LabelSelector: selector, Start: start, End: end}
		text := pprofText
		switch r.IntN(4) {
		case 0:
			in.StackTraceSelector = randomSite(r)
		case 1:
			in.StackTraceSelector = &typesv1.StackTraceSelector{GoPgo: &typesv1.GoPGO{KeepLocations: uint32(r.IntN(4)),
				AggregateCallees: r.IntN(2) == 0}}
			if in.StackTraceSelector.GoPgo.AggregateCallees {
				// Pyroscope clears the lines of a location that is a leaf wherever it is, also as a caller.
				text = func(p *profilev1.Profile) (any, error) {
					for _, l := range p.Location {
						for _, line := range l.Line {
							line.Line = 0
						}
					}
					return pprofText(p)
				}
			}
		case 2:
			// One profile is in one block, which Pyroscope cuts as a whole.
			in.MaxNodes = &cut
			of := [][2]string{{"go-cpu-labels", typeIDs()[1]}, {"go-cpu-labels", typeIDs()[0]}, {"go-heap", typeIDs()[5]},
				{"go-goroutine", ids[len(ids)-2]}}[r.IntN(4)]
			in.LabelSelector, in.ProfileTypeID, in.Start, in.End = `{service_name="captured-`+of[0]+`"}`, of[1], whole[0],
				whole[1]
		}
		return asked(calls.SelectMergeProfile, in, text) //nolint:staticcheck // Grafana's data source calls it
	default:
		switch r.IntN(4) {
		case 0:
			for range 1 + r.IntN(2) {
				stacks.TraceIdSelector = append(stacks.TraceIdSelector, fmt.Sprintf("%032x", 1+r.IntN(3)))
			}
		case 1:
			stacks.StackTraceSelector = randomSite(r)
		case 2:
			stacks.Format = querierv1.ProfileFormat_PROFILE_FORMAT_TREE
		}
		return asked(calls.SelectMergeStacktraces, stacks, func(out *querierv1.SelectMergeStacktracesResponse) (any, error) {
			return fmt.Sprint(treeText(out.Tree), flameText(out.Flamegraph)), nil
		})
	}
}

func randomSite(r *rand.Rand) *typesv1.StackTraceSelector {
	s := &typesv1.StackTraceSelector{}
	for range 1 + r.IntN(2) {
		s.CallSite = append(s.CallSite, &typesv1.Location{Name: fmt.Sprintf("main.f%d", r.IntN(12))})
	}
	return s
}

func randomSelector(r *rand.Rand) string {
	matchers := []string{
		`service_name="shop-0"`, `service_name="shop-1"`, `service_name=~"shop-.*"`, `service_name!="shop-2"`,
		`pod=~"pod-.-1"`, `region="eu"`, `region!="eu"`,
		`endpoint="/cart"`, `endpoint!="/cart"`, `endpoint=~"/.*"`, `endpoint!~".+"`, `endpoint=""`, `service_version="1.1"`,
		`nothing=""`, `nothing="x"`,
		`service_name="captured-go-cpu-labels"`, `service_name=~"captured.*"`, `__name__="process_cpu"`,
	}
	r.Shuffle(len(matchers), func(i, j int) { matchers[i], matchers[j] = matchers[j], matchers[i] })
	return "{" + strings.Join(matchers[:r.IntN(3)], ", ") + "}"
}

// isInternal reports whether a label is one that only Pyroscope has.
func isInternal(name string) bool {
	// It hides names that are no ASCII, which have underscores here.
	return slices.Contains([]string{"__delta__", "__session_id__", "__service_name__", "__order__", "__otel__", "gr__e"},
		name)
}

func asJSON[T any](out *T) (any, error) {
	text, err := json.Marshal(out)
	return string(text), err
}

func pointsOf(out *querierv1.SelectSeriesResponse) (any, error) { return seriesText(out.Series), nil }

func labelText(list []*typesv1.LabelPair) string {
	var texts []string
	for _, l := range list {
		texts = append(texts, l.Name+"="+l.Value)
	}
	slices.Sort(texts)
	return strings.Join(texts, ",")
}

func seriesText(series []*typesv1.Series) (lines []string) {
	for _, s := range series {
		var points []string
		for _, p := range s.Points {
			points = append(points, fmt.Sprintf("%d:%g", p.Timestamp, p.Value))
		}
		lines = append(lines, labelText(s.Labels)+" "+strings.Join(points, " "))
	}
	return lines
}

func flameText(f *querierv1.FlameGraph) string {
	return fmt.Sprint(f.GetTotal(), f.GetMaxSelf(), "\n", strings.Join(levelPaths(f.GetNames(), f.GetLevels(), 4), "\n"))
}

// levelPaths returns the nodes of a flame graph, each with the names above it and its values, in order.
func levelPaths(names []string, rows []*querierv1.Level, width int) (lines []string) {
	sides := width / 3
	type placed struct {
		path       string
		start, end [2]int64
	}
	var above []placed
	for level, row := range rows {
		var ends [2]int64
		var here []placed
		for i := 0; i+width <= len(row.Values); i += width {
			v := row.Values[i : i+width]
			p := placed{path: names[v[width-1]]}
			for side := range sides {
				p.start[side] = ends[side] + v[3*side]
				p.end[side] = p.start[side] + v[3*side+1]
				ends[side] = p.end[side]
			}
			if level > 0 {
				for _, a := range above {
					inside := true
					for side := range sides {
						inside = inside && p.start[side] >= a.start[side] && p.end[side] <= a.end[side]
					}
					if inside {
						p.path = a.path + ";" + p.path
						break
					}
				}
			}
			here = append(here, p)
			var values []int64
			for side := range sides {
				values = append(values, v[3*side+1], v[3*side+2])
			}
			lines = append(lines, fmt.Sprint(p.path, values))
		}
		above = here
	}
	slices.Sort(lines)
	return lines
}

// treeText reads Pyroscope's form of a tree.
func treeText(b []byte) string {
	var lines []string
	number := func() (n uint64) {
		for shift := 0; len(b) > 0; shift += 7 {
			c := b[0]
			b = b[1:]
			n |= uint64(c&0x7f) << shift
			if c < 0x80 {
				break
			}
		}
		return n
	}
	type open struct{ path string }
	stack := []open{{}}
	for len(stack) > 0 && len(b) > 0 {
		parent := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		n := number()
		name := string(b[:n])
		b = b[n:]
		path := parent.path + ";" + name
		lines = append(lines, fmt.Sprint(path, " ", number()))
		for range number() {
			stack = append(stack, open{path})
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// pprofText returns the stacks of a pprof with their sums.
func pprofText(p *profilev1.Profile) (any, error) {
	if len(p.Sample) == 0 {
		return []string(nil), nil
	}
	b, err := p.MarshalVT()
	if err != nil {
		return nil, err
	}
	parsed, err := profile.ParseUncompressed(b)
	if err != nil {
		return nil, err
	}
	return append(stacksText(parsed), parsed.SampleType[0].Type, parsed.SampleType[0].Unit), nil
}

// stacksText returns the stacks of a pprof with their sums, in order.
func stacksText(p *profile.Profile) (lines []string) {
	sums := map[string]int64{}
	for _, s := range p.Sample {
		var path []string
		for _, l := range slices.Backward(s.Location) {
			for _, line := range slices.Backward(l.Line) {
				path = append(path, fmt.Sprintf("%s %s:%d", line.Function.Name, line.Function.Filename, line.Line))
			}
			if len(l.Line) == 0 {
				path = append(path, fmt.Sprintf("%x", l.Address))
			}
		}
		sums[strings.Join(path, ";")] += s.Value[0]
	}
	for path, sum := range sums {
		if sum != 0 {
			lines = append(lines, fmt.Sprint(path, " ", sum))
		}
	}
	slices.Sort(lines)
	return lines
}

// renderText returns what /pyroscope/render answers, without what depends on the time of the call.
func renderText(t testing.TB, address, path string, params url.Values) string {
	answer := collectortest.Ask(t, http.MethodGet, address+path+"?"+params.Encode(), http.NoBody)
	require.Equal(t, http.StatusOK, answer.StatusCode, answer.Body)
	return answer.Body
}
