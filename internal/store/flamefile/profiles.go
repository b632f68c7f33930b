// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package flamefile

import (
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/compact"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/answers"
)

// OfProfiles returns the Stacks of each group of profiles, which must be of one sample type, as the store shows them. A
// sample without values counts one for each timestamp. The error wraps model.ErrTooLarge.
func OfProfiles(dict pprofile.ProfilesDictionary, groups ...[]pprofile.Profile) ([]Stacks, error) {
	var importer compact.Importer
	to := dictionary.New()
	importer.Reset(to)
	importer.Begin(dict)
	defer importer.End()
	lists := make([]Stacks, len(groups))
	for i, profiles := range groups {
		samples := answers.Samples{Dict: to}
		at := map[int32]int{} // in samples, by stack: each is walked over once, as very many samples can have a deep one
		for _, p := range profiles {
			for _, s := range p.Samples().All() {
				index, _ := importer.Stack(s.StackIndex())
				stack := int32(index)
				value := otlp.Sum(s)
				if s.Values().Len() == 0 {
					value = int64(s.TimestampsUnixNano().Len())
				}
				k, isKnown := at[stack]
				if !isKnown {
					k = len(samples.Stacks)
					at[stack] = k
					samples.Stacks, samples.Values = append(samples.Stacks, stack), append(samples.Values, 0)
				}
				samples.Values[k] = otlp.SaturatingAdd(samples.Values[k], value)
			}
		}
		g, err := answers.GraphOf(&samples)
		if err != nil {
			return nil, err
		}
		lists[i] = OfGraph(g, func(name string) string { return name })
		if len(profiles) > 0 {
			t := profiles[0].SampleType()
			lists[i].Name = dict.StringTable().At(int(t.TypeStrindex()))
			lists[i].Unit = dict.StringTable().At(int(t.UnitStrindex()))
		}
	}
	return lists, nil
}
