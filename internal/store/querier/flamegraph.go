// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package querier

import (
	"cmp"
	"context"
	"encoding/binary"
	"encoding/hex"
	"slices"
	"strings"

	"connectrpc.com/connect"
	querierv1 "github.com/grafana/pyroscope/api/gen/proto/go/querier/v1"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/answers"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/model"
)

// The bounds of max_nodes, which are Pyroscope's.
const (
	defaultMaxNodes = 8 << 10
	maxMaxNodes     = 1 << 20
)

// other is the name of what is left out of a flame graph.
const other = "other"

// SelectMergeStacktraces merges profiles to a flame graph, or another format of it.
func (q *Querier) SelectMergeStacktraces(
	ctx context.Context, r *connect.Request[querierv1.SelectMergeStacktracesRequest],
) (*connect.Response[querierv1.SelectMergeStacktracesResponse], error) {
	in := r.Msg
	if in.Async != nil &&
		(in.Async.RequestId != "" || in.Async.Type != querierv1.AsyncQueryType_ASYNC_QUERY_TYPE_DISABLED) {
		return nil, connect.NewError(connect.CodeUnimplemented, errNoAsync)
	}
	out := &querierv1.SelectMergeStacktracesResponse{}
	switch in.Format {
	case querierv1.ProfileFormat_PROFILE_FORMAT_DOT:
		return nil, connect.NewError(connect.CodeUnimplemented, errNoDot)
	case querierv1.ProfileFormat_PROFILE_FORMAT_PPROF:
		profile, err := q.pprof(ctx, in)
		out.Pprof = &querierv1.PprofProfile{Profile: profile}
		return respond(out, err)
	default:
	}
	root, err := q.pruned(ctx, in.GetMaxNodes(), in)
	if err != nil {
		return nil, err
	}
	if in.Format == querierv1.ProfileFormat_PROFILE_FORMAT_TREE {
		out.Tree = treeBytes(root)
	} else {
		names, rows, maxSelf := levelsOf(root, false)
		out.Flamegraph = &querierv1.FlameGraph{Names: names, Levels: rows, Total: root.total, MaxSelf: maxSelf}
	}
	return connect.NewResponse(out), nil
}

// flameBytes is what a node takes beside the tree: a copy of it, its level, and the answer.
const flameBytes = 160

// SelectMergeSpanProfile merges the samples of spans.
func (q *Querier) SelectMergeSpanProfile(
	ctx context.Context, r *connect.Request[querierv1.SelectMergeSpanProfileRequest],
) (*connect.Response[querierv1.SelectMergeSpanProfileResponse], error) {
	in := r.Msg
	format := querierv1.ProfileFormat_PROFILE_FORMAT_FLAMEGRAPH
	if in.Format == querierv1.ProfileFormat_PROFILE_FORMAT_TREE {
		format = in.Format
	}
	of, err := q.SelectMergeStacktraces(ctx, connect.NewRequest(&querierv1.SelectMergeStacktracesRequest{
		ProfileTypeID: in.ProfileTypeID, LabelSelector: in.LabelSelector, Start: in.Start, End: in.End, MaxNodes: in.MaxNodes,
		Format: format, SpanSelector: in.SpanSelector,
	}))
	if err != nil {
		return nil, err
	}
	return connect.NewResponse(&querierv1.SelectMergeSpanProfileResponse{Flamegraph: of.Msg.Flamegraph,
		Tree: of.Msg.Tree}), nil
}

// Diff compares two selections.
func (q *Querier) Diff(ctx context.Context,
	r *connect.Request[querierv1.DiffRequest]) (*connect.Response[querierv1.DiffResponse], error) {
	none := &querierv1.SelectMergeStacktracesRequest{}
	left, right := cmp.Or(r.Msg.Left, none), cmp.Or(r.Msg.Right, none)
	root, err := q.pruned(ctx, max(left.GetMaxNodes(), right.GetMaxNodes()), left, right)
	if err != nil {
		return nil, err
	}
	names, rows, maxSelf := levelsOf(root, true)
	return connect.NewResponse(&querierv1.DiffResponse{Flamegraph: &querierv1.FlameGraphDiff{
		Names: names, Levels: rows, Total: otlp.SaturatingAdd(root.total, root.baseTotal), MaxSelf: maxSelf,
		LeftTicks: root.total, RightTicks: root.baseTotal,
	}}), nil
}

func (q *Querier) selected(ctx context.Context, in *querierv1.SelectMergeStacktracesRequest) (*selection, error) {
	if len(in.SpanSelector) > 0 && len(in.TraceIdSelector) > 0 {
		return nil, invalid("span_selector and trace_id_selector cannot be combined")
	}
	if n := len(in.SpanSelector) + len(in.TraceIdSelector) + len(in.ProfileIdSelector); n > maxIDs {
		return nil, invalid("a query may select at most %d ids, found %d", maxIDs, n)
	}
	s, err := q.selectTyped(ctx, in.ProfileTypeID, in.LabelSelector, in.Start, in.End)
	if err != nil {
		return nil, err
	}
	if err := s.selectStacks(in.StackTraceSelector); err != nil {
		return nil, err
	}
	var errs [3]error
	s.profiles, errs[0] = parseIDs[profileID]("profile", in.ProfileIdSelector, "-")
	s.spans, errs[1] = parseIDs[[8]byte]("span", in.SpanSelector, "")
	s.traces, errs[2] = parseIDs[[16]byte]("trace", in.TraceIdSelector, "")
	return s, cmp.Or(errs[:]...)
}

// parseIDs reads hexadecimal ids, in which separators do not count.
func parseIDs[ID profileID | [8]byte | [16]byte](what string, list []string, separator string) (map[ID]bool, error) {
	ids := map[ID]bool{}
	for _, s := range list {
		var id ID
		b, err := hex.DecodeString(strings.ReplaceAll(s, separator, ""))
		if err != nil || len(b) != len(id) {
			return nil, invalid("%q is not the id of a %s: %d hexadecimal digits", model.Shorten(s), what, 2*len(id))
		}
		ids[ID(b)] = true
	}
	return ids, nil
}

const maxIDs = 10_000

// tree merges one request, or two to compare, to a tree of names.
func (q *Querier) tree(ctx context.Context, requests ...*querierv1.SelectMergeStacktracesRequest) (*answers.Tree,
	error) {
	queries := make([]*answers.Query, len(requests))
	for i, in := range requests {
		if in.StackTraceSelector.GetGoPgo() != nil {
			return nil, invalid("`go_pgo` is for pprofs: use SelectMergeProfile")
		}
		s, err := q.selected(ctx, in)
		if err != nil {
			return nil, err
		}
		queries[i] = s.stacks()
	}
	for _, query := range queries[1:] {
		query.Memory = queries[0].Memory
	}
	return q.Store.NameTree(ctx, queries...)
}

// pruned merges the requests to a tree of about maxNodes.
func (q *Querier) pruned(ctx context.Context, maxNodes int64,
	requests ...*querierv1.SelectMergeStacktracesRequest) (*node, error) {
	if maxNodes < 0 || maxNodes > maxMaxNodes {
		return nil, invalid("max_nodes must be from 1 to %d, found %d", maxMaxNodes, maxNodes)
	}
	tree, err := q.tree(ctx, requests...)
	if err != nil {
		return nil, err
	}
	if err := meterOf(ctx).Grow(flameBytes * len(tree.Frame)); err != nil {
		return nil, err
	}
	return prune(tree, int(cmp.Or(maxNodes, defaultMaxNodes))), nil
}

// node is a node of a flame graph. The base is the right side of a comparison.
type node struct {
	name                             string
	self, total, baseSelf, baseTotal int64
	children                         []*node
}

// prune returns the tree with about most nodes, as Pyroscope prunes it: nodes below the value of the most-th largest,
// and those that are named other, become one node named other below their parent. A node counts by the larger of its
// two sides.
func prune(t *answers.Tree, most int) *node {
	sizes := make([]int64, len(t.Frame))
	for i := range sizes {
		sizes[i] = max(t.Total[i], at(t.BaseTotal, i))
	}
	least := int64(1)
	if len(sizes)-1 > most {
		sorted := slices.Sorted(slices.Values(sizes[1:]))
		least = max(least, sorted[len(sorted)-most])
	}
	// Samples without a stack are nowhere.
	root := &node{total: otlp.SaturatingSubtract(t.Total[0], t.Self[0]),
		baseTotal: otlp.SaturatingSubtract(at(t.BaseTotal, 0), at(t.BaseSelf, 0))}
	nodes := make([]*node, len(sizes))
	nodes[0] = root
	for i := 1; i < len(nodes); i++ {
		parent, name := nodes[t.Parent[i]], t.Frames[t.Frame[i]].Name
		switch {
		case parent == nil:
		case sizes[i] < least || name == other:
			parent.leave(t.Total[i], at(t.BaseTotal, i))
		default:
			nodes[i] = &node{name, t.Self[i], t.Total[i], at(t.BaseSelf, i), at(t.BaseTotal, i), nil}
			parent.children = append(parent.children, nodes[i])
		}
	}
	if t.IsPruned {
		left, base := t.LeftOut()
		for i, in := range nodes {
			if in != nil && (left[i] != 0 || at(base, i) != 0) {
				in.leave(left[i], at(base, i))
			}
		}
	}
	return root
}

// at returns an entry of the base of a comparison, or 0 if nothing is compared.
func at(base []int64, i int) int64 {
	if base == nil {
		return 0
	}
	return base[i]
}

// leave adds a node's totals to what is left out below n, which is its last child in the end.
func (n *node) leave(total, baseTotal int64) {
	if len(n.children) == 0 || n.children[0].name != other {
		n.children = append([]*node{{name: other}}, n.children...)
	}
	left := n.children[0]
	left.total, left.baseTotal = otlp.SaturatingAdd(left.total, total), otlp.SaturatingAdd(left.baseTotal, baseTotal)
	left.self, left.baseSelf = left.total, left.baseTotal
}

// ordered moves what is left out to the end.
func (n *node) ordered() []*node {
	if len(n.children) > 1 && n.children[0].name == other {
		n.children = append(n.children[1:], n.children[0])
	}
	return n.children
}

// levelsOf returns the rows of a flame graph and the names that they refer to, of which the root is called total. A
// node has its offset as the distance from the end of the one before, its total, its own value, and its name; of a
// comparison, it has the first three of both sides.
func levelsOf(root *node, compared bool) (names []string, rows []*querierv1.Level, maxSelf int64) {
	type placed struct {
		*node
		offset, baseOffset int64
	}
	numbers := map[string]int64{}
	for row := []placed{{node: root}}; len(row) > 0; {
		level, next := &querierv1.Level{}, []placed(nil)
		var end, baseEnd int64
		for _, p := range row {
			level.Values = append(level.Values, p.offset-end, p.total, p.self)
			if compared {
				level.Values = append(level.Values, p.baseOffset-baseEnd, p.baseTotal, p.baseSelf)
			}
			name := cmp.Or(p.name, "total")
			number, ok := numbers[name]
			if !ok {
				number = int64(len(names))
				names, numbers[name] = append(names, name), number
			}
			level.Values = append(level.Values, number)
			end, baseEnd = otlp.SaturatingAdd(p.offset, p.total), otlp.SaturatingAdd(p.baseOffset, p.baseTotal)
			maxSelf = max(maxSelf, p.self, p.baseSelf)
			offset, baseOffset := otlp.SaturatingAdd(p.offset, p.self), otlp.SaturatingAdd(p.baseOffset, p.baseSelf)
			for _, child := range p.ordered() {
				next = append(next, placed{child, offset, baseOffset})
				offset = otlp.SaturatingAdd(offset, child.total)
				baseOffset = otlp.SaturatingAdd(baseOffset, child.baseTotal)
			}
		}
		rows, row = append(rows, level), next
	}
	return names, rows, maxSelf
}

// treeBytes writes a tree in Pyroscope's own form: for each node, the last child first, its name and own value, and how
// many children follow. It is empty if there are none.
func treeBytes(root *node) (b []byte) {
	if len(root.children) == 0 {
		return nil
	}
	for stack := []*node{root}; len(stack) > 0; {
		n := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		b = binary.AppendUvarint(b, uint64(len(n.name)))
		b = append(b, n.name...)
		b = binary.AppendUvarint(b, uint64(n.self))
		children := n.ordered()
		b = binary.AppendUvarint(b, uint64(len(children)))
		stack = append(stack, children...)
	}
	return b
}
