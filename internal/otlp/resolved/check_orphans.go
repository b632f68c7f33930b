// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package resolved

import (
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"
)

// reach marks what profiles refer to, directly or through other entries. Entry 0 of each table counts as reached.
type reach struct {
	dict    pprofile.ProfilesDictionary
	reached [numTables][]bool
	// ofHeaders are the strings of resource and scope attributes. Marshalling keeps them in the string table, and
	// unmarshalling leaves them there without a visible reference.
	ofHeaders map[string]struct{}
}

func (c *checker) checkOrphans(pd pprofile.Profiles) {
	r := &reach{dict: c.dict, ofHeaders: make(map[string]struct{})}
	for table, n := range c.lengths {
		r.reached[table] = make([]bool, n)
	}
	r.visit(pd)
	for table, reached := range r.reached {
		for i := 1; i < len(reached); i++ {
			if reached[i] {
				continue
			}
			if tableID(table) == stringTable {
				if _, isOfHeader := r.ofHeaders[c.dict.StringTable().At(i)]; isOfHeader {
					continue
				}
			}
			c.fault(at(tableNames[table], i), "is not reached from any profile")
		}
	}
}

func (r *reach) visit(pd pprofile.Profiles) {
	for _, rp := range pd.ResourceProfiles().All() {
		r.addStrings(rp.Resource().Attributes())
		for _, sp := range rp.ScopeProfiles().All() {
			r.addStrings(sp.Scope().Attributes())
			for _, profile := range sp.Profiles().All() {
				visitProfile(r, path{}, profile)
				for _, s := range profile.Samples().All() {
					visitSample(r, path{}, s)
				}
			}
		}
	}
}

func (r *reach) index(_ path, _ string, to tableID, i int32) {
	reached := r.reached[to]
	if !holds(i, len(reached)) || reached[i] {
		return
	}
	reached[i] = true
	switch to {
	case mappingTable:
		visitMapping(r, path{}, r.dict.MappingTable().At(int(i)))
	case locationTable:
		visitLocation(r, path{}, r.dict.LocationTable().At(int(i)))
	case functionTable:
		visitFunction(r, path{}, r.dict.FunctionTable().At(int(i)))
	case attributeTable:
		visitAttribute(r, path{}, r.dict.AttributeTable().At(int(i)))
	case stackTable:
		visitStack(r, path{}, r.dict.StackTable().At(int(i)))
	default: // links and strings refer to nothing
	}
}

func (r *reach) indices(p path, field string, to tableID, indices pcommon.Int32Slice) {
	for _, i := range indices.All() {
		r.index(p, field, to, i)
	}
}

func (r *reach) addStrings(m pcommon.Map) {
	for name, v := range m.All() {
		r.ofHeaders[name] = struct{}{}
		r.addStringsOf(v)
	}
}

func (r *reach) addStringsOf(v pcommon.Value) {
	switch v.Type() {
	case pcommon.ValueTypeStr:
		r.ofHeaders[v.Str()] = struct{}{}
	case pcommon.ValueTypeMap:
		r.addStrings(v.Map())
	case pcommon.ValueTypeSlice:
		for _, e := range v.Slice().All() {
			r.addStringsOf(e)
		}
	default:
	}
}
