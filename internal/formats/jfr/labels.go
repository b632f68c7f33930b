// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package jfr

import (
	"errors"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/wire"
)

// labels are what Pyroscope's Java agent sends beside a recording (LabelsSnapshot). An event has the number of a
// context, and perhaps that of a span's name.
type labels struct {
	contexts map[int64][]label
	strings  map[int64]string
	// leftOut is the number of labels beyond maxLabels, truncated that of values above maxLabelBytes.
	leftOut, truncated int
}

// label is a key and a value, as numbers of strings.
type label struct{ key, value int64 }

// maxLabels bounds the labels of a context, and maxLabelBytes the value of a label: every event can refer to the same
// ones. Pyroscope itself accepts 30 labels, and values of this size.
const maxLabels, maxLabelBytes = 32, 2048

var errLabels = errors.New("the labels are not a LabelsSnapshot")

// parseLabels reads
//
//	message Context { map<int64, int64> labels = 1; }
//	message LabelsSnapshot { map<int64, Context> contexts = 1; map<int64, string> strings = 2; }
func parseLabels(data []byte) (labels, error) {
	l := labels{contexts: map[int64][]label{}, strings: map[int64]string{}}
	err := eachEntry(data, func(number protowire.Number, entry label, content []byte) error {
		switch number {
		case 1:
			var context []label
			err := eachEntry(content, func(number protowire.Number, entry label, _ []byte) error {
				switch {
				case number != 1:
				case len(context) < maxLabels:
					context = append(context, entry)
				default:
					l.leftOut++
				}
				return nil
			})
			l.contexts[entry.key] = context
			return err
		case 2:
			value := string(content)
			if len(value) > maxLabelBytes {
				l.truncated++
				value = strings.Clone(dictionary.CutUTF8(value, maxLabelBytes))
			}
			l.strings[entry.key] = value
		}
		return nil
	})
	return l, err
}

// eachEntry calls visit for each entry of the maps in a message: with the number of the map's field, and the value as a
// number and as bytes.
func eachEntry(message []byte, visit func(number protowire.Number, entry label, content []byte) error) error {
	r := wire.New(message)
	for r.Next() {
		key, value, ok := wire.Pair(r.Content)
		if !ok {
			return errLabels
		}
		if err := visit(r.Number, label{key: int64(key.Value), value: int64(value.Value)}, value.Content); err != nil {
			return err
		}
	}
	if r.IsMalformed() {
		return errLabels
	}
	return nil
}
