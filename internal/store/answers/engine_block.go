// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package answers

import (
	"context"
	"crypto/sha256"
	"math"
	"slices"
	"strings"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/kind"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/head"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/model"
)

// engineBlock is a Block of what an engine lists for a query: profiles without their samples, which its parts ask for.
type engineBlock struct {
	*head.Snapshot
	block    *head.Block
	ctx      context.Context //nolint:containedctx // it is that of the query, as its model.Memory's
	engine   Engine
	bySeries map[engineSeries]int32
	// found are the series of each service, listed what was listed of it.
	found  map[EngineID]engineFound
	listed map[string]engineListed
	types  []EngineType
}

// engineListed has the types whose profiles were listed, and the bounds of their times. An until of 0 means no end.
type engineListed struct {
	types       []EngineType
	from, until int64
}

// engineFound has the attributes of a series. Its profiles state the same temporality.
type engineFound struct {
	resource, profile dictionary.AttributeSetIndex
	temporality       string
}

type engineSeries struct {
	id               EngineID
	service, profile string
	typ              model.SampleType
}

// attributes interns those that are of a series.
func (e *engineBlock) attributes(list []model.Attribute) dictionary.AttributeSetIndex {
	var set []int32
	slices.SortFunc(list, func(a, b model.Attribute) int { return strings.Compare(a.Key, b.Key) })
	for _, a := range list {
		if kind.IsSeriesAttribute(a.Key) && a.Key != kind.NameAttribute {
			set = append(set, e.attribute(a))
		}
	}
	return e.block.Dict.AttributeSets.Intern(set)
}

func (e *engineBlock) attribute(a model.Attribute) int32 {
	dict := e.block.Dict
	return int32(dict.Attributes.Intern(dictionary.Attribute{Key: dict.Strings.Intern(a.Key),
		Value: dictionary.StringValue(a.Value)}))
}

// addProfile adds a profile, which is later than those before of its series.
func (e *engineBlock) addProfile(t *EngineType, p *EngineProfile, resolution int64) {
	key := engineSeries{p.Series, t.Service, t.profile(), t.typ()}
	i, ok := e.bySeries[key]
	if !ok {
		found := e.found[p.Series]
		i = e.block.AddSeries(model.BlockSeries{
			ID: engineSeriesID(key), Service: t.Service, Profile: key.profile, Type: key.typ, Resource: found.resource,
			Attributes: found.profile,
		}, &head.Use{})
		e.bySeries[key] = i
	}
	sr := &e.block.Series[i]
	c := model.Profile{
		Time: p.Time, Duration: p.Duration, Start: p.Time, End: p.Time + p.Duration, Total: p.Total,
		Samples: int32(min(p.Samples, math.MaxInt32)),
		Values:  t.valuesOf(e.found[p.Series].temporality, p.Duration, p.IsTimed),
	}
	if p.IsTimed {
		c.Flags |= model.HasTimestamps
		if p.Time == 0 || p.First < c.Start {
			c.Start = p.First - 1
		}
		c.End = max(c.End, p.Last+1)
	}
	if p.HasAttributes {
		c.Flags |= model.HasAttributes
	}
	if p.HasLinks {
		c.Flags |= model.HasLinks
	}
	switch c.Values {
	case kind.Gauge:
		sr.Use.Gauge.Hold(&c, uint64(c.Total)^uint64(c.Samples)<<32, resolution)
	case kind.Cumulative:
		if !sr.Use.DifferenceOfSums(&c) {
			return
		}
	}
	c.MetaAt = e.block.Meta(model.Meta{
		PeriodType: t.PeriodType.Type, PeriodUnit: kind.UnitName(t.PeriodType.Unit), Period: p.Period,
		Attributes: sr.Attributes,
	})
	e.block.Add(sr, head.Chunk{Profile: c})
}

// engineSeriesID returns the identity of a series by its names and attributes.
func engineSeriesID(key engineSeries) (id model.SeriesID) {
	var b []byte
	for _, name := range []string{key.profile, key.typ.Type, key.typ.Unit} {
		b = dictionary.AppendString(b, name)
	}
	hash := sha256.Sum256(b)
	copy(id[:], key.id[:])
	copy(id[len(key.id):], hash[:])
	return id
}
