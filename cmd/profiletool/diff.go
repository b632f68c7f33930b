// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/frames"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/shares"
	"github.com/otelcol-profiles/otelcol-profiles/internal/pprof/uninteresting"
)

// gate compares the shares of functions in two sets of profiles, as a gate in CI.
type gate struct {
	term   *terminal
	reader *reader
	failIf []string
	format string
	alpha  float64
	rows   int
}

func newDiff(term *terminal) *cobra.Command {
	g := &gate{term: term, reader: newReader(term), format: "text"}
	cmd := &cobra.Command{
		Use:     "diff BASE FILE...",
		Short:   "Compare the shares of functions with a base, as a gate in CI",
		GroupID: groupFiles,
		Long: `Diff compares the shares that functions have of the whole with those in a base. It exits with 1 if a condition holds:

  self(PATTERN)>+5%   the share of the whole grew by more than 5 percent of itself
  self(PATTERN)>+5pp  it grew by more than 5 points of the whole
  total(PATTERN)>30%  it is more than 30 percent

Self is what was running, total what was on the stack. PATTERN is a function or a package; pkg/... or pkg/… is the
package and what its name begins. It is an error if no function is it. Functions that a pprof names in drop_frames
count for their callers, as in top.

Without --profile it is process_cpu, or else the first profile. The difference of values: top -diff_base=BASE FILE`,
		Args: func(_ *cobra.Command, paths []string) error {
			if len(paths) < 2 {
				return errNoFile
			}
			return nil
		},
		RunE: func(_ *cobra.Command, paths []string) error { return g.run(paths[:1], paths[1:]) },
	}
	f := cmd.Flags()
	f.StringArrayVar(&g.failIf, "fail-if", nil, "exit with 1 if `CONDITION` holds; may be repeated")
	f.Float64Var(&g.alpha, "alpha", 0.01,
		"growth counts only if it is by chance with a probability below `P`; 1 lets all of it count")
	f.IntVar(&g.rows, "rows", 10, "list the `N` functions with the largest changes, in text and markdown")
	formats := []string{g.format, "markdown", "sarif"}
	addChoice(cmd, choice{&g.format, formats}, "format", "", "output `FORMAT`: "+strings.Join(formats, ", "))
	g.reader.flags(cmd)
	return cmd
}

// condition is one --fail-if.
type condition struct {
	text, pattern string
	isTotal       bool
	// growth means that limit is a growth of the share: relative to itself, or in points of the whole.
	growth, points bool
	limit          float64
}

var conditionPattern = regexp.MustCompile(`^(self|total)\((.+)\)\s*>\s*(\+?)([0-9]+(?:\.[0-9]+)?)\s*(%|pp)$`)

func parseCondition(s string) (c condition, err error) {
	m := conditionPattern.FindStringSubmatch(strings.TrimSpace(s))
	if m == nil || m[5] == "pp" && m[3] == "" {
		return c, fmt.Errorf("--fail-if %q must look like self(pkg/...)>+5%%, total(main.handle)>+5pp or self(runtime)>20%%",
			s)
	}
	limit, err := strconv.ParseFloat(m[4], 64)
	return condition{
		text: strings.TrimSpace(s), pattern: m[2], isTotal: m[1] == "total", growth: m[3] != "", points: m[5] == "pp",
		limit: limit / 100,
	}, err
}

// matches reports whether the pattern is that of a function.
func (c *condition) matches(function string) bool {
	for _, dots := range []string{"...", "…"} {
		if prefix, ok := strings.CutSuffix(c.pattern, dots); ok {
			return strings.HasPrefix(function, prefix) || frames.Package(function) == strings.TrimSuffix(prefix, "/")
		}
	}
	return function == c.pattern || frames.Package(function) == c.pattern
}

// side is one of the two sets of profiles.
type side struct {
	kind  kind
	whole shares.Whole
	// conditions has a part for each condition, self one for each function. isKnown reports that a condition's pattern
	// matches a function that is on a stack.
	conditions []shares.Part
	isKnown    []bool
	self       map[string]*shares.Part
	// sources has the file and line of functions.
	sources map[string]source
}

type source struct {
	file string
	line int64
}

func (g *gate) run(base, files []string) error {
	if g.alpha <= 0 || g.alpha > 1 {
		return fmt.Errorf("--alpha must be above 0 and at most 1, found %g", g.alpha)
	}
	var conditions []condition
	for _, s := range g.failIf {
		c, err := parseCondition(s)
		if err != nil {
			return err
		}
		conditions = append(conditions, c)
	}
	before, err := g.side(base, conditions)
	if err != nil {
		return err
	}
	now, err := g.side(files, conditions)
	if err != nil {
		return err
	}
	if before.kind.Profile != now.kind.Profile || before.kind.Type != now.kind.Type {
		return fmt.Errorf("the base has %s/%s, the other files have %s/%s: choose by --profile and --type",
			before.kind.Profile, before.kind.Type, now.kind.Profile, now.kind.Type)
	}
	for i, c := range conditions {
		if !before.isKnown[i] && !now.isKnown[i] {
			return fmt.Errorf(
				"--fail-if %q: no function or package in the profiles %s is %q, in the base or in the other files: "+
					"check the name, and write pkg/... for all below a package", c.text, now.kind, c.pattern)
		}
	}
	results := g.judge(conditions, before, now)
	switch g.format {
	case "sarif":
		err = writeSARIF(g.term.out, results, now)
	case "markdown":
		g.writeMarkdown(results, before, now)
	default:
		g.writeText(results, before, now)
	}
	if err == nil && slices.ContainsFunc(results, func(r judged) bool { return r.failed }) {
		return errFound
	}
	return err
}

// side reads files and measures the conditions. It looks at process_cpu, or else the first profile, and its main type.
func (g *gate) side(paths []string, conditions []condition) (*side, error) {
	messages, err := g.reader.readAll(paths)
	if err != nil {
		return nil, err
	}
	pd, err := g.reader.comparable(true, messages)
	if err != nil {
		return nil, err
	}
	groups := groupsOf(pd, false)
	if len(groups) == 0 {
		return nil, fmt.Errorf("%s: there are no profiles", strings.Join(paths, ", "))
	}
	shown := groups[mainOf(groups, func(g *group) candidate { return candidate{g.kind, g.isDefault} })]
	s := &side{kind: shown.kind, self: map[string]*shares.Part{}, sources: sourcesOf(pd)}
	s.conditions, s.isKnown = make([]shares.Part, len(conditions)), make([]bool, len(conditions))
	for _, p := range shown.profiles {
		s.add(pd, p, conditions)
	}
	if s.whole.Total <= 0 {
		return nil, fmt.Errorf("%s: the profiles %s have no values", strings.Join(paths, ", "), shown.kind)
	}
	return s, nil
}

// add adds a profile. It is a cluster of the test.
func (s *side) add(pd pprofile.Profiles, p pprofile.Profile, conditions []condition) {
	var f frames.Frames
	f.Begin(pd.Dictionary(), pd.SampleCount())
	dropped := uninteresting.Of(otlp.Attributes(pd.Dictionary(), p.AttributeIndices()))
	if !dropped.IsEmpty() {
		f.Drop(dropped.Matches)
	}
	matching := make([]float64, len(conditions))
	self := map[string]float64{}
	total, squares := 0.0, 0.0
	for _, sample := range p.Samples().All() {
		value := valueOf(sample)
		leaf, fault := f.Leaf(sample.StackIndex())
		if value <= 0 || fault != frames.None {
			continue
		}
		total, squares = total+value, squares+value*value
		self[f.Name(leaf)] += value
		for i := range conditions {
			c := &conditions[i]
			isLeaf := c.matches(f.Name(leaf))
			isOnStack := isLeaf
			if !isLeaf && (c.isTotal || !s.isKnown[i]) {
				names, _ := f.All(sample.StackIndex())
				isOnStack = slices.ContainsFunc(names, func(name int32) bool { return c.matches(f.Name(name)) })
			}
			s.isKnown[i] = s.isKnown[i] || isOnStack
			if isLeaf || c.isTotal && isOnStack {
				matching[i] += value
			}
		}
	}
	if total == 0 {
		return // it has nothing to compare, and is no cluster
	}
	stringAt := func(i int32) string { return pd.Dictionary().StringTable().At(int(i)) }
	each := shares.WeightingOf(s.kind.Type, s.kind.Unit, p.Period(), stringAt(p.PeriodType().UnitStrindex()))
	s.whole.Add(total, each.Observations(total, squares))
	for i, value := range matching {
		s.conditions[i].Add(value, total)
	}
	for name, value := range self {
		if s.self[name] == nil {
			s.self[name] = &shares.Part{}
		}
		s.self[name].Add(value, total)
	}
}

// valueOf returns the value of a sample: without values it counts once for each timestamp.
func valueOf(s pprofile.Sample) (value float64) {
	if s.Values().Len() == 0 {
		return float64(s.TimestampsUnixNano().Len())
	}
	for _, v := range s.Values().All() {
		value += float64(v)
	}
	return value
}

func sourcesOf(pd pprofile.Profiles) map[string]source {
	all := map[string]source{}
	table := pd.Dictionary().StringTable()
	for _, function := range pd.Dictionary().FunctionTable().All() {
		name, file := table.At(int(function.NameStrindex())), table.At(int(function.FilenameStrindex()))
		if file != "" {
			all[name] = source{file, function.StartLine()}
		}
	}
	return all
}

// comparison is a share before and now.
type comparison struct{ before, now shares.Share }

func (c comparison) difference() float64 { return c.now.Value - c.before.Value }

func (c comparison) p() float64 { return shares.PValue(c.before, c.now) }

// format formats both shares, the change, and the probability that it is by chance.
func (c comparison) format(layout string) string {
	p := fmt.Sprintf("%.4f", c.p())
	if c.p() < 1e-4 {
		p = "<0.0001"
	}
	percent := func(share float64) string { return fmt.Sprintf("%.2f %%", 100*share) }
	return fmt.Sprintf(layout, percent(c.before.Value), percent(c.now.Value), fmt.Sprintf("%+.2f pp", 100*c.difference()),
		p)
}

type judged struct {
	condition
	comparison
	// failed means that the condition holds, unsure that it would, but that chance can explain it.
	failed, unsure bool
}

func (g *gate) judge(conditions []condition, before, now *side) (results []judged) {
	for i, c := range conditions {
		r := judged{condition: c,
			comparison: comparison{before.whole.Measure(before.conditions[i]), now.whole.Measure(now.conditions[i])}}
		switch {
		case !c.growth:
			r.failed = r.now.Value > c.limit
		case c.points:
			r.failed = r.difference() > c.limit
		default:
			r.failed = r.now.Value > r.before.Value*(1+c.limit)
		}
		if r.failed && c.growth && g.alpha < 1 && r.p() >= g.alpha {
			r.failed, r.unsure = false, true
		}
		results = append(results, r)
	}
	return results
}

// verdict names the outcome.
func (r *judged) verdict() string {
	switch {
	case r.failed:
		return "failed"
	case r.unsure:
		return "by chance"
	default:
		return "ok"
	}
}

func (r *judged) String() string {
	return fmt.Sprintf("%s: %s, %.0f and %.0f samples)", r.text, r.format("%s → %s (%s, p = %s"), r.before.Observations,
		r.now.Observations)
}

// change is a function whose share is another one than before.
type change struct {
	name string
	comparison
}

func (g *gate) changes(before, now *side) (list []change) {
	part := func(s *side, name string) shares.Part {
		if p := s.self[name]; p != nil {
			return *p
		}
		return shares.Part{}
	}
	add := func(name string) {
		c := change{name, comparison{before.whole.Measure(part(before, name)), now.whole.Measure(part(now, name))}}
		if c.difference() != 0 {
			list = append(list, c)
		}
	}
	for name := range now.self {
		add(name)
	}
	for name := range before.self {
		if now.self[name] == nil {
			add(name)
		}
	}
	size := func(c change) float64 { return math.Abs(c.difference()) }
	slices.SortFunc(list, func(a, b change) int {
		return cmp.Or(cmp.Compare(size(b), size(a)), cmp.Compare(a.name, b.name))
	})
	return list[:min(len(list), max(g.rows, 0))]
}

func (g *gate) writeText(results []judged, before, now *side) {
	for i := range results {
		fmt.Fprintf(g.term.out, "%-9s  %s\n", results[i].verdict(), &results[i])
	}
	w := tabwriter.NewWriter(g.term.out, 0, 0, 2, ' ', tabwriter.AlignRight)
	for _, c := range g.changes(before, now) {
		fmt.Fprintf(w, "%s\t  %s\n", c.format("%s\t%s\t%s\tp = %s"), c.name)
	}
	_ = w.Flush()
}

func (g *gate) writeMarkdown(results []judged, before, now *side) {
	cell := strings.NewReplacer("|", `\|`, "\n", " ", "`", "'").Replace
	if len(results) > 0 {
		fmt.Fprintf(g.term.out, "| | condition | before | now | change | p |\n|---|---|---|---|---|---|\n")
		for i := range results {
			r := &results[i]
			fmt.Fprintf(g.term.out, "| %s | `%s` | %s |\n", r.verdict(), cell(r.text), r.format("%s | %s | %s | %s"))
		}
		fmt.Fprintln(g.term.out)
	}
	fmt.Fprintf(g.term.out, "Share of %s/%s by function, %.0f samples before and %.0f now:\n\n", now.kind.Profile,
		now.kind.Type, before.whole.Observations, now.whole.Observations)
	fmt.Fprintf(g.term.out, "| function | before | now | change | p |\n|---|---|---|---|---|\n")
	for _, c := range g.changes(before, now) {
		fmt.Fprintf(g.term.out, "| `%s` | %s |\n", cell(c.name), c.format("%s | %s | %s | %s"))
	}
}

// writeSARIF writes conditions that hold as results of SARIF 2.1.0, each at the function of it that has the most.
func writeSARIF(w io.Writer, results []judged, now *side) error {
	type object = map[string]any
	found := []object{}
	for i := range results {
		r := &results[i]
		if !r.failed {
			continue
		}
		entry := object{"ruleId": "profile-share", "level": "error", "message": object{"text": r.String()}}
		best, most := source{}, -1.0
		for name, part := range now.self {
			at, ok := now.sources[name]
			if ok && r.matches(name) && (part.Sum > most || part.Sum == most && at.file < best.file) {
				best, most = at, part.Sum
			}
		}
		if best.file != "" {
			physical := object{"artifactLocation": object{"uri": filepath.ToSlash(best.file)}}
			if best.line > 0 {
				physical["region"] = object{"startLine": best.line}
			}
			entry["locations"] = []object{{"physicalLocation": physical}}
		}
		found = append(found, entry)
	}
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(object{
		"$schema": "https://json.schemastore.org/sarif-2.1.0.json", "version": "2.1.0",
		"runs": []object{{
			"tool": object{"driver": object{
				"name": "profiletool", "version": toolVersion,
				"rules": []object{{"id": "profile-share",
					"shortDescription": object{"text": "A function's share of a profile is above its limit"}}},
			}},
			"results": found,
		}},
	})
}
