// A Go program with inlined calls, generics, closures and methods.
package main

import (
	"fmt"
	"io"
	"os"
	"sort"
	"strings"
)

type basket[T int | float64] struct{ items []T }

//go:noinline
func (b *basket[T]) total() (sum T) {
	for _, item := range b.items {
		sum += item
	}
	return sum
}

func square(n int) int { return n*n + n>>3 }

func twice(n int) int { return square(n) + square(n+1) }

//go:noinline
func price(n int) (sum int) {
	for i := 0; i < n; i++ {
		sum += twice(i) ^ i
	}
	return sum
}

func main() {
	var a basket[int]
	var b basket[float64]
	for i := 0; i < 100*len(os.Args); i++ {
		a.items = append(a.items, price(i))
		b.items = append(b.items, float64(i)/3)
	}
	sort.Slice(a.items, func(i, j int) bool { return a.items[i] > a.items[j] })
	fmt.Println(a.total(), b.total(), strings.Repeat("=", 3))
	if len(os.Args) > 1 { // wait to be looked at
		_, _ = io.Copy(io.Discard, os.Stdin)
	}
}
