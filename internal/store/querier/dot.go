// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package querier

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	typesv1 "github.com/grafana/pyroscope/api/gen/proto/go/types/v1"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/answers"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/model"
)

const defaultDotNodes = 100

// dot returns a graph for Graphviz of the functions with the largest totals, at most limit of them. A node shows its
// self and total values, an edge what the caller spends in the callee. Recursion counts once.
func dot(t *answers.Tree, limit int, typ *typesv1.ProfileType) string {
	if len(t.Frame) == 1 {
		return ""
	}
	rows := t.Functions()
	order := make([]int32, len(rows))
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortFunc(order, func(a, b int32) int {
		return cmp.Or(cmp.Compare(rows[b].Total, rows[a].Total), strings.Compare(rows[a].Frame.Name, rows[b].Frame.Name))
	})
	number := map[int32]int{}
	for i, frame := range order[:min(limit, len(order))] {
		number[frame] = i + 1
	}
	type edge struct{ from, to int }
	ends, edges, counted := t.Ends(), map[edge]int64{}, map[edge]int32{}
	// caller is the number of the nearest shown ancestor of a node, its own if it is shown.
	caller := make([]int, len(t.Frame))
	for i := 1; i < len(t.Frame); i++ {
		above := caller[t.Parent[i]]
		caller[i] = above
		n, isShown := number[t.Frame[i]]
		if !isShown {
			continue
		}
		caller[i] = n
		if e := (edge{above, n}); above != 0 && int32(i) >= counted[e] { // not below another one
			edges[e] = otlp.SaturatingAdd(edges[e], t.Total[i])
			counted[e] = ends[i]
		}
	}
	var b strings.Builder
	total := t.Total[0]
	fmt.Fprintf(&b, "digraph %s {\nnode [style=filled fillcolor=\"#f8f8f8\"]\n", strconv.Quote(typ.GetSampleType()))
	fmt.Fprintf(&b, "L [shape=box label=%s]\n",
		strconv.Quote(fmt.Sprintf("Type: %s\nTotal: %d %s\nShowing %d of %d functions",
			typ.GetSampleType(), total, typ.GetSampleUnit(), len(number), len(rows))))
	for _, frame := range order[:min(limit, len(order))] {
		row := rows[frame]
		fmt.Fprintf(&b, "N%d [shape=box label=%s]\n", number[frame], strconv.Quote(fmt.Sprintf("%s\n%d (%s)\nof %d (%s)",
			model.Shorten(row.Frame.Name), row.Self, percent(row.Self, total), row.Total, percent(row.Total, total))))
	}
	for _, e := range slices.SortedFunc(maps.Keys(edges), func(a, b edge) int {
		return cmp.Or(cmp.Compare(edges[b], edges[a]), cmp.Compare(a.from, b.from), cmp.Compare(a.to, b.to))
	}) {
		fmt.Fprintf(&b, "N%d -> N%d [label=\" %d\" weight=%d]\n", e.from, e.to, edges[e], 1+100*edges[e]/max(total, 1))
	}
	b.WriteString("}\n")
	return b.String()
}

func percent(part, whole int64) string {
	return fmt.Sprintf("%.2f%%", 100*float64(part)/float64(max(whole, 1)))
}
