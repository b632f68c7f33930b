// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package worst

import (
	"strconv"
	"strings"

	pt "github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

// labelsOfOneString is a sample with labels of one long string, of as many keys as fit.
func labelsOfOneString(s string) func(int) []byte {
	return func(size int) []byte {
		w, sample := pprofHead().Strings(strings.Repeat(s, size/2)), none
		for i := 0; len(w)+len(sample) < size; i++ {
			w = w.Strings("k" + strconv.Itoa(i))
			sample = sample.Label(pt.PprofLabel{Key: int64(own + 1 + i), Str: own})
		}
		return w.Message(pt.PprofSample, sample)
	}
}

// SplunkPProf are pprofs that cost most in log records of Splunk's agents, which have a profile for each period, and
// times as labels.
var SplunkPProf = Inputs{
	"a long text under many keys":         labelsOfOneString("x"),
	"a long invalid text under many keys": labelsOfOneString("\xff"),
	"values of one key": func(size int) []byte {
		return append(pprofHead().Strings(strings.Repeat("x", size/2)),
			asSample(nil, repeat(size/2, nil, none.Label(pt.PprofLabel{Key: 1, Str: own})))...)
	},
	"two long keys of one prefix": func(size int) []byte {
		prefix := strings.Repeat("p", size/8)
		return repeat(size, pprofHead().Strings(prefix+"a", prefix+"b"),
			labelled(pt.PprofLabel{Key: own, Str: 1}, pt.PprofLabel{Key: own + 1, Str: 1}))
	},
	"long times": func(size int) []byte {
		head := pprofHead().Strings("source.event.time", strings.Repeat("1", size/8), strings.Repeat("0", size/8))
		return repeat(size, head, labelled(pt.PprofLabel{Key: own, Str: own + 1},
			pt.PprofLabel{Key: strTraceID, Str: own + 2}, pt.PprofLabel{Key: strSpanID, Str: own + 2}))
	},
	"periods": func(size int) []byte {
		return fill(size, pprofHead().Strings("source.event.period"), func(b []byte, i int) []byte {
			return append(b, labelled(pt.PprofLabel{Key: own, Num: int64(i + 1)})...)
		})
	},
	"a key of every sample's own": numbered(func(i int) pt.PprofWire {
		return append(none.Strings(strconv.Itoa(i)), labelled(pt.PprofLabel{Key: int64(own + i), Str: 1})...)
	}),
}
