// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package firefox

import (
	"bytes"
	"errors"
	"math"
	"strconv"
)

var errColumn = errors.New("a column must be a list of numbers")

// indices is a column of indices; −1 is null, and what is no index.
type indices []int32

// reals is a column of numbers; NaN is null.
type reals []float64

const none = -1

// at returns an index, or none if the column does not have it.
func (c indices) at(i int32) int32 {
	if i < 0 || int(i) >= len(c) {
		return none
	}
	return c[i]
}

// at returns a number, or NaN if the column does not have it.
func (c reals) at(i int) float64 {
	if i >= len(c) {
		return math.NaN()
	}
	return c[i]
}

func indexOf(v float64) int32 {
	if v >= 0 && v <= math.MaxInt32 {
		return int32(v)
	}
	return none
}

// UnmarshalJSON reads a list of numbers and nulls.
func (c *indices) UnmarshalJSON(b []byte) error {
	*c = make(indices, 0, bytes.Count(b, []byte(","))+1)
	return eachNumber(b, func(v float64) { *c = append(*c, indexOf(v)) })
}

// UnmarshalJSON reads a list of numbers and nulls.
func (c *reals) UnmarshalJSON(b []byte) error {
	*c = make(reals, 0, bytes.Count(b, []byte(","))+1)
	return eachNumber(b, func(v float64) { *c = append(*c, v) })
}

// eachNumber calls add for each element of a list, which is valid JSON. A null, in place of the list or of an element,
// is NaN.
func eachNumber(b []byte, add func(float64)) error {
	b = bytes.TrimSpace(b)
	if string(b) == "null" {
		return nil
	}
	if len(b) < 2 || b[0] != '[' {
		return errColumn
	}
	for b = bytes.TrimSpace(b[1 : len(b)-1]); len(b) > 0; {
		var element []byte
		element, b, _ = bytes.Cut(b, []byte(","))
		element = bytes.TrimSpace(element)
		v := math.NaN()
		if string(element) != "null" {
			var err error
			if v, err = strconv.ParseFloat(string(element), 64); err != nil && !errors.Is(err, strconv.ErrRange) {
				return errColumn
			}
		}
		add(v)
	}
	return nil
}
