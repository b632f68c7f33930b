// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package model

// Adder is a Part whose samples are elsewhere, where they are added up.
type Adder interface {
	Part
	// Add calls use with the sums of the samples of profiles, each times its weight, by class and what is wanted. The
	// profiles are of one sample type, and those of a series are in their order.
	Add(list []Addend, want SumsWanted, use func(class int, c *Columns) error) error
	// SamplesHave reports whether samples have an attribute of a key, with one of some values; nil means any. Add returns
	// the error if that is not known.
	SamplesHave(key string, values []string) bool
}

// Addend is a profile that counts for a class by a weight.
type Addend struct {
	Series  *BlockSeries
	Profile *Profile
	Class   int
	Weight  float64
}

// SumsWanted are the columns of sums. Samples are equal if they do not differ in them.
type SumsWanted struct {
	ColumnsWanted
	Stacks bool
	// Keys are the attributes to read, unless all of them are wanted.
	Keys []AttributeKey
	// Counts are wanted instead of values: each profile counts once.
	Counts bool
	// From and Until bound the timestamps. 0 means no bound.
	From, Until int64
}

// AttributeKey selects attributes of a key with one of some values; nil means any.
type AttributeKey struct {
	Key    string
	Values []string
}
