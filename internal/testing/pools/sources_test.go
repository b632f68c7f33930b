// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pools

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Each pool in the sources has a test below, and each of those has a pool.
func TestEveryPoolIsKnown(t *testing.T) {
	found := poolsIn(t, filepath.Join("..", "..", ".."))
	known := slices.Clone(passedOn)
	for _, u := range uses {
		known = append(known, u.pools...)
	}
	slices.Sort(known)
	assert.Equal(t, found, slices.Compact(known), "a new pool needs a row in uses")
}

// passedOn are fields of the type compact.Pool, which is one of uses.
var passedOn = []string{"exporter/pyroscopeexporter/batches", "processor/dictionarydedupprocessor/batches"}

// poolsIn returns the variables and fields of a type that is called Pool, such as sync.Pool, by their folder and name.
func poolsIn(t *testing.T, root string) (found []string) {
	err := filepath.WalkDir(root, func(file string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := filepath.ToSlash(file)
		if entry.IsDir() {
			isOther := entry.Name() == "bin" || entry.Name() == "testing" || entry.Name() == "build" ||
				entry.Name() == "testdata" ||
				strings.HasPrefix(entry.Name(), ".") && entry.Name() != ".." && file != root
			if isOther {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		folder, err := filepath.Rel(root, filepath.Dir(file))
		for _, declared := range poolsOf(parsed) {
			found = append(found, path.Join(filepath.ToSlash(folder), declared))
		}
		return err
	})
	require.NoError(t, err)
	slices.Sort(found)
	return found
}

// poolsOf returns the variables and fields of a file that are, or have, pools.
func poolsOf(file *ast.File) (names []string) {
	add := func(list []*ast.Ident, of ...ast.Node) {
		for _, n := range of {
			if n == nil {
				continue
			}
			ast.Inspect(n, func(n ast.Node) bool {
				if s, ok := n.(*ast.SelectorExpr); ok && s.Sel.Name == "Pool" {
					for _, name := range list {
						names = append(names, name.Name)
					}
				}
				_, isStruct := n.(*ast.StructType) // whose fields are found by themselves
				return !isStruct
			})
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ValueSpec:
			if n.Type != nil {
				add(n.Names, n.Type)
			}
			for _, value := range n.Values {
				if literal, ok := value.(*ast.CompositeLit); ok {
					add(n.Names, literal.Type)
				}
			}
		case *ast.Field:
			add(n.Names, n.Type)
		case *ast.AssignStmt:
			for i, value := range n.Rhs {
				if literal, ok := value.(*ast.CompositeLit); ok && i < len(n.Lhs) {
					if name, ok := n.Lhs[i].(*ast.Ident); ok {
						add([]*ast.Ident{name}, literal.Type)
					}
				}
			}
		}
		return true
	})
	return slices.Compact(names)
}
