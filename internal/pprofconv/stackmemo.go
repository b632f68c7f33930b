// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pprofconv

import (
	"bytes"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiledict"
)

// knownStack is a list of location ids, by its bytes in the payload, and the stack that it became.
type knownStack struct {
	at    span // empty where the sample's ids do not stand in one packed field
	index profiledict.StackIndex
	probe profiledict.HashProbe
}

// knownStacks remembers stacks by their bytes. It pays where samples of one stack come again and
// again, as they do where each carries a time: Read is for those. Decode's samples are already
// combined by stack, so that a stack seldom comes a third time.
type knownStacks struct {
	list  []knownStack // the first one is unused, since HashIndex has no entry 0
	index profiledict.HashIndex
}

func (s *knownStacks) reset() {
	s.list = append(s.list[:0], knownStack{})
	s.index.Reset(0)
}

// find looks up the ids at this place of data; the result's index is 0 where they are new.
func (s *knownStacks) find(data []byte, at span) knownStack {
	ids := data[at.start:at.end]
	p := s.index.Start(profiledict.HashBytes(ids))
	for e := s.index.Next(&p); e != 0; e = s.index.Next(&p) {
		if known := &s.list[e]; bytes.Equal(data[known.at.start:known.at.end], ids) {
			return *known
		}
	}
	return knownStack{at: at, probe: p}
}

// add keeps what find did not know. Nothing may have been added in between.
func (s *knownStacks) add(k knownStack) {
	if k.at.end == 0 || k.index == 0 {
		return
	}
	s.index.Insert(k.probe, int32(len(s.list)))
	s.list = append(s.list, k)
}
