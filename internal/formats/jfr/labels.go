// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package jfr

import (
	"errors"

	"google.golang.org/protobuf/encoding/protowire"
)

// labels are what Pyroscope's Java agent sends beside a recording (LabelsSnapshot): an event has the number of a context,
// and perhaps that of a span's name.
type labels struct {
	contexts map[int64][]label
	strings  map[int64]string
}

// label is a key and a value, as numbers of strings.
type label struct{ key, value int64 }

// maxLabels bounds the labels of one context, and maxLabelBytes one's text: every event can refer to the same ones.
// Pyroscope itself accepts 30 labels, and values of this size.
const maxLabels, maxLabelBytes = 32, 2048

var errLabels = errors.New("the labels are not a LabelsSnapshot")

// parseLabels reads
//
//	message Context { map<int64, int64> labels = 1; }
//	message LabelsSnapshot { map<int64, Context> contexts = 1; map<int64, string> strings = 2; }
func parseLabels(data []byte) (labels, error) {
	l := labels{contexts: map[int64][]label{}, strings: map[int64]string{}}
	err := eachField(data, func(number protowire.Number, _ uint64, entry []byte) error {
		var key int64
		var content []byte
		err := eachField(entry, func(number protowire.Number, v uint64, data []byte) error {
			switch number {
			case 1:
				key = int64(v)
			case 2:
				content = data
			}
			return nil
		})
		switch {
		case err != nil:
			return err
		case number == 1:
			l.contexts[key], err = parseContext(content)
		case number == 2:
			l.strings[key] = string(content[:min(len(content), maxLabelBytes)])
		}
		return err
	})
	return l, err
}

func parseContext(data []byte) (context []label, err error) {
	err = eachField(data, func(number protowire.Number, _ uint64, entry []byte) error {
		if number != 1 || len(context) == maxLabels {
			return nil
		}
		var l label
		err := eachField(entry, func(number protowire.Number, v uint64, _ []byte) error {
			switch number {
			case 1:
				l.key = int64(v)
			case 2:
				l.value = int64(v)
			}
			return nil
		})
		context = append(context, l)
		return err
	})
	return context, err
}

// eachField calls visit for each field with its number, or its bytes.
func eachField(data []byte, visit func(number protowire.Number, v uint64, content []byte) error) error {
	for len(data) > 0 {
		number, wire, n := protowire.ConsumeTag(data)
		if n < 0 {
			return errLabels
		}
		data = data[n:]
		var v uint64
		var content []byte
		switch wire {
		case protowire.VarintType:
			v, n = protowire.ConsumeVarint(data)
		case protowire.BytesType:
			content, n = protowire.ConsumeBytes(data)
		case protowire.Fixed32Type, protowire.Fixed64Type:
			n = protowire.ConsumeFieldValue(number, wire, data)
		default: // groups, which nobody sends and which can be nested
			return errLabels
		}
		if n < 0 {
			return errLabels
		}
		if err := visit(number, v, content); err != nil {
			return err
		}
		data = data[n:]
	}
	return nil
}
