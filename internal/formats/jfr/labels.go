// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package jfr

import (
	"errors"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/wire"
)

// labels are what Pyroscope's Java agent sends beside a recording (LabelsSnapshot). An event has the number of a context, and
// perhaps that of a span's name.
type labels struct {
	contexts map[int64][]label
	strings  map[int64]string
}

// label is a key and a value, as numbers of strings.
type label struct{ key, value int64 }

// maxLabels bounds the labels of a context, and maxLabelBytes the value of a label: every event can refer to the same ones.
// Pyroscope itself accepts 30 labels, and values of this size.
const maxLabels, maxLabelBytes = 32, 2048

var errLabels = errors.New("the labels are not a LabelsSnapshot")

// parseLabels reads
//
//	message Context { map<int64, int64> labels = 1; }
//	message LabelsSnapshot { map<int64, Context> contexts = 1; map<int64, string> strings = 2; }
func parseLabels(data []byte) (labels, error) {
	l := labels{contexts: map[int64][]label{}, strings: map[int64]string{}}
	r := wire.New(data)
	for r.Next() {
		entry, content, err := parseEntry(r.Content)
		switch {
		case err != nil:
			return l, err
		case r.Number == 1:
			if l.contexts[entry.key], err = parseContext(content); err != nil {
				return l, err
			}
		case r.Number == 2:
			l.strings[entry.key] = string(content[:min(len(content), maxLabelBytes)])
		}
	}
	if r.IsMalformed() {
		return l, errLabels
	}
	return l, nil
}

func parseContext(data []byte) (context []label, err error) {
	r := wire.New(data)
	for r.Next() {
		if r.Number != 1 || len(context) == maxLabels {
			continue
		}
		l, _, err := parseEntry(r.Content)
		if err != nil {
			return nil, err
		}
		context = append(context, l)
	}
	if r.IsMalformed() {
		return nil, errLabels
	}
	return context, nil
}

// parseEntry reads an entry of a map: its key, and its value as a number or as bytes.
func parseEntry(data []byte) (entry label, content []byte, err error) {
	r := wire.New(data)
	for r.Next() {
		switch r.Number {
		case 1:
			entry.key = int64(r.Value)
		case 2:
			entry.value, content = int64(r.Value), r.Content
		}
	}
	if r.IsMalformed() {
		return label{}, nil, errLabels
	}
	return entry, content, nil
}
