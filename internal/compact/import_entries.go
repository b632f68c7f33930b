// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package compact

import (
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiledict"
)

func (im *Importer) location(i int32) (int32, Reason) {
	v, why, done := im.locations.find(i, LocationOutOfRange)
	if !done {
		v, why = im.newLocation(im.src.locations.At(int(i)))
		v, why = im.locations.put(i, v, why)
	}
	return v, why
}

func (im *Importer) newLocation(src pprofile.Location) (int32, Reason) {
	mapping, why := im.mapping(src.MappingIndex())
	if why != Understood {
		return 0, why
	}
	lines := im.lineScratch[:0]
	srcLines := src.Lines()
	for k := range srcLines.Len() {
		line := srcLines.At(k)
		function, why := im.function(line.FunctionIndex())
		if why != Understood {
			return 0, why
		}
		lines = append(lines, profiledict.Line{Function: profiledict.FunctionIndex(function), Line: line.Line(), Column: line.Column()})
	}
	im.lineScratch = lines
	l := profiledict.Location{
		Mapping:    profiledict.MappingIndex(mapping),
		Attributes: im.AttributeSet(src.AttributeIndices()),
		Address:    src.Address(),
	}
	return int32(im.dict.Locations.Intern(l, lines)), Understood
}

func (im *Importer) mapping(i int32) (int32, Reason) {
	v, why, done := im.mappings.find(i, MappingOutOfRange)
	if !done {
		v, why = im.newMapping(i)
		v, why = im.mappings.put(i, v, why)
	}
	return v, why
}

func (im *Importer) newMapping(i int32) (int32, Reason) {
	src := im.src.mappings.At(int(i))
	filename, why := im.String(src.FilenameStrindex())
	if why != Understood {
		return 0, why
	}
	return int32(im.dict.Mappings.Intern(profiledict.Mapping{
		MemoryStart: src.MemoryStart(),
		MemoryLimit: src.MemoryLimit(),
		FileOffset:  src.FileOffset(),
		Filename:    filename,
		Attributes:  im.AttributeSet(src.AttributeIndices()),
	})), Understood
}

func (im *Importer) function(i int32) (int32, Reason) {
	v, why, done := im.functions.find(i, FunctionOutOfRange)
	if !done {
		v, why = im.newFunction(im.src.functions.At(int(i)))
		v, why = im.functions.put(i, v, why)
	}
	return v, why
}

func (im *Importer) newFunction(src pprofile.Function) (int32, Reason) {
	name, why := im.String(src.NameStrindex())
	if why != Understood {
		return 0, why
	}
	systemName, why := im.String(src.SystemNameStrindex())
	if why != Understood {
		return 0, why
	}
	filename, why := im.String(src.FilenameStrindex())
	if why != Understood {
		return 0, why
	}
	f := profiledict.Function{Name: name, SystemName: systemName, Filename: filename, StartLine: src.StartLine()}
	return int32(im.dict.Functions.Intern(f)), Understood
}
