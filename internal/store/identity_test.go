// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/store/answers"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/model"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

// inFiles returns a sample of functions, each with its file or, if there is none, its binary, leaf first.
func inFiles(value int64, namesAndPlaces ...string) profiletest.Sample {
	s := profiletest.Sample{Values: []int64{value}}
	for i := 0; i < len(namesAndPlaces); i += 3 {
		l := profiletest.Location{
			Lines: []profiletest.Line{{Function: profiletest.Function{Name: namesAndPlaces[i], File: namesAndPlaces[i+1]}}}}
		if binary := namesAndPlaces[i+2]; binary != "" {
			l.Mapping = &profiletest.Mapping{File: binary}
		}
		s.Stack = append(s.Stack, l)
	}
	return s
}

// inlined returns a sample whose functions are all inlined in its root.
func inlined(s profiletest.Sample) profiletest.Sample {
	for _, l := range s.Stack[1:] {
		s.Stack[0].Lines = append(s.Stack[0].Lines, l.Lines...)
	}
	s.Stack = s.Stack[:1]
	return s
}

// A function is its name, whatever folder it was built in. Its path counts as far as it must to tell it from another
// one in the same profile.
func TestFunctionsOfTwoBuilds(t *testing.T) {
	for name, tc := range map[string]struct {
		before, after []profiletest.Sample
		// want are the functions of the comparison, with the values of the selection and of its base.
		want []string
	}{
		"another folder": {
			[]profiletest.Sample{inFiles(10, "leaf", "/v1/a.go", "", "main", "/v1/main.go", "")},
			[]profiletest.Sample{inFiles(30, "leaf", "/v2/a.go", "", "main", "/v2/main.go", "")},
			[]string{"leaf 30 10", "main 30 10"},
		},
		"a version in the path, and another file": {
			[]profiletest.Sample{inFiles(10, "zstd.match", "/mod/compress@v1.17.11/zstd/match.go", ""),
				inFiles(1, "moved", "/b/old.go", "")},
			[]profiletest.Sample{inFiles(30, "zstd.match", "/mod/compress@v1.18.0/zstd/match.go", ""),
				inFiles(1, "moved", "/b/new.go", "")},
			[]string{"moved 1 1", "zstd.match 30 10"},
		},
		"two of a name in one profile": {
			[]profiletest.Sample{inFiles(10, "init", "/v1/a.c", ""), inFiles(5, "init", "/v1/b.c", "")},
			[]profiletest.Sample{inFiles(30, "init", "/v2/a.c", ""), inFiles(6, "init", "/v2/b.c", "")},
			[]string{"init 30 10", "init 6 5"},
		},
		"two of a name and a file name": {
			[]profiletest.Sample{inFiles(10, "<module>", "/v1/a/__init__.py", "", "main", "/v1/m.py", ""),
				inFiles(5, "<module>", "/v1/b/__init__.py", "", "main", "/v1/m.py", "")},
			[]profiletest.Sample{inFiles(30, "<module>", "/v2/a/__init__.py", "", "main", "/v2/m.py", "")},
			[]string{"<module> 0 5", "<module> 30 10", "main 30 15"},
		},
		"two binaries": {
			[]profiletest.Sample{inFiles(10, "init", "", "/v1/liba.so"), inFiles(5, "init", "", "/v1/libb.so")},
			[]profiletest.Sample{inFiles(30, "init", "", "/v2/liba.so"), inFiles(6, "init", "", "/v2/libb.so")},
			[]string{"init 30 10", "init 6 5"},
		},
		"inlined in one of them, and in one caller": {
			[]profiletest.Sample{inFiles(10, "price", "/v1/a.go", "", "cart", "/v1/a.go", ""), inFiles(1, "price", "/v1/a.go", "")},
			[]profiletest.Sample{inlined(inFiles(30, "price", "/v2/a.go", "", "cart", "/v2/a.go", "")),
				inFiles(2, "price", "/v2/a.go", "")},
			[]string{"cart 30 10", "price 32 11"},
		},
		"one function in a binary of another name": {
			[]profiletest.Sample{inFiles(10, "work", "", "/srv/shop-1")},
			[]profiletest.Sample{inFiles(30, "work", "", "/srv/shop-2")},
			[]string{"work 30 10"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := New(testConfig())
			add(t, s, "x", "cpu", "nanoseconds", 0, 10, tc.before...)
			add(t, s, "x", "cpu", "nanoseconds", 10, 10, tc.after...)
			base := model.Selection{Service: "shop", Profile: "process_cpu", From: at(0), Until: at(10)}
			sel := base
			sel.From, sel.Until = at(10), at(20)
			g, err := s.Diff(t.Context(), sel, base, 1000)
			require.NoError(t, err)
			assert.Equal(t, tc.want, functionsOf(g.Tree))
			// The whole time has each of them once, too: its two profiles lie in one selection.
			whole := base
			whole.Until = at(20)
			both, err := s.FlameGraph(t.Context(), whole, 1000)
			require.NoError(t, err)
			assert.Len(t, both.Functions(), len(tc.want))
			assert.Equal(t, g.Total[0]+g.BaseTotal[0], both.Total[0])
		})
	}
}

// functionsOf lists the functions of a comparison with their totals.
func functionsOf(t *answers.Tree) (list []string) {
	base := *t
	base.Self, base.Total = t.BaseSelf, t.BaseTotal
	of := base.Functions()
	for i, row := range t.Functions() {
		list = append(list, fmt.Sprint(row.Frame.Name, " ", row.Total, " ", of[i].Total))
	}
	slices.Sort(list)
	return list
}
