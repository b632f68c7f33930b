// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package hot

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// A storage has a record for each window that a comparison needs, with the tracks of all services, and one with the
// newest window of each version. Records are used in turn, so that a storage has as many as there are windows in
// Entry.To, and two. Their keys have the settings of the entry: with other ones it begins anew, and Settings names the
// records that are left.

// recordID identifies a record: that of an entry for the window that began at a time in nanoseconds, or that for its
// versions.
type recordID struct {
	entry      int
	isVersions bool
	begin      int64
}

func recordOf(t *track, begin time.Time) recordID {
	if t.version != "" {
		return recordID{entry: t.entry, isVersions: true}
	}
	return recordID{entry: t.entry, begin: begin.UnixNano()}
}

// Record is what a storage has under a key.
type Record struct {
	Key   string
	Value []byte
	id    recordID
}

// saved is a window of a track as it is stored.
type saved struct {
	Resource     []string   `json:"resource"`
	Version      string     `json:"version,omitempty"`
	First        time.Time  `json:"first"`
	Begin        time.Time  `json:"begin"`
	Observations float64    `json:"observations"`
	Rest         float64    `json:"rest"`
	Functions    []measured `json:"functions"`
}

// settings are those that what is stored depends on.
func (f *Functions) settings(e *Entry) string {
	return fmt.Sprintf("%s,%s,%s,%s,%s,%s", e.Type, e.Of, e.Window, e.To, e.Version, strings.Join(f.ResourceKeys, ","))
}

// slots is the number of records for windows.
func (e *Entry) slots() int { return int(e.To/e.Window) + 2 }

func (f *Functions) record(id recordID) Record {
	entry := &f.Entries[id.entry]
	key := versionsKey(f.settings(entry))
	if !id.isVersions {
		key = slotKey(f.settings(entry), int(id.begin/int64(entry.Window)%int64(entry.slots())))
	}
	return Record{Key: key, id: id}
}

func slotKey(settings string, slot int) string { return fmt.Sprintf("%s/%d", settings, slot) }
func versionsKey(settings string) string       { return settings + "/versions" }

// SettingsKey is the key under which a storage has the settings of all entries.
const SettingsKey = "settings"

// maxSlots is more than an entry can have.
const maxSlots = 1 << 12

// Settings returns what is stored under SettingsKey, and the keys of records of other settings that a storage has by
// what it had there.
func (f *Functions) Settings(before []byte) (now []byte, obsolete []string, err error) {
	slots := map[string]int{}
	if before != nil {
		err = json.Unmarshal(before, &slots)
	}
	current := map[string]int{}
	for i := range f.Entries {
		current[f.settings(&f.Entries[i])] = f.Entries[i].slots()
	}
	for settings, n := range slots {
		if _, ok := current[settings]; ok {
			continue
		}
		obsolete = append(obsolete, versionsKey(settings))
		for slot := range min(n, maxSlots) {
			obsolete = append(obsolete, slotKey(settings, slot))
		}
	}
	now, _ = json.Marshal(current)
	return now, obsolete, err
}

// Wanted returns the records that can have what is needed at a time, the oldest first, without their values.
func (f *Functions) Wanted(now time.Time) (records []Record) {
	for i := range f.Entries {
		entry := &f.Entries[i]
		for n := entry.slots() - 1; n >= 0; n-- {
			begin := now.Truncate(entry.Window).Add(-time.Duration(n) * entry.Window)
			records = append(records, f.record(recordID{entry: i, begin: begin.UnixNano()}))
		}
		if entry.Version != "" {
			records = append(records, f.record(recordID{entry: i, isVersions: true}))
		}
	}
	return records
}

// Restore adds what a record has that is needed at a time.
func (f *Functions) Restore(record Record, now time.Time) error {
	var tracks []saved
	if err := json.Unmarshal(record.Value, &tracks); err != nil {
		return fmt.Errorf("read %q: %w", record.Key, err)
	}
	entry := &f.Entries[record.id.entry]
	for i := range tracks {
		s := &tracks[i]
		if len(s.Resource) != len(f.ResourceKeys) || len(s.Functions) > keptPerCount*MaxCount ||
			(s.Version != "") != record.id.isVersions {
			return fmt.Errorf("read %q: track %d has %d values of attributes, %d functions and the version %q",
				record.Key, i, len(s.Resource), len(s.Functions), s.Version)
		}
		keep := time.Duration(entry.slots()) * entry.Window
		if record.id.isVersions {
			keep = versionExpiry
		}
		if s.Begin.After(now) || now.Sub(s.Begin) > keep || !s.Begin.Equal(s.Begin.Truncate(entry.Window)) {
			continue // the slot has not been used since
		}
		if t := f.track(record.id.entry, s.Resource, s.Version, s.First, now); t != nil {
			t.last = s.Begin.Add(entry.Window)
			f.keep(t, window{begin: s.Begin, observations: s.Observations, rest: s.Rest}, s.Functions)
		}
	}
	return nil
}

// Records returns the records that the storage has not got yet. They count as stored unless Missing is called.
func (f *Functions) Records() (records []Record) {
	for id := range f.unsaved {
		list := []saved{}
		for _, t := range f.tracks {
			if w := t.windowOf(id); w != nil {
				list = append(list, w.saved(t))
			}
		}
		record := f.record(id)
		record.Value, _ = json.Marshal(list) // strings and finite numbers
		records = append(records, record)
	}
	clear(f.unsaved)
	return records
}

// windowOf returns the window that a record has of a track, or nil.
func (t *track) windowOf(id recordID) *window {
	switch {
	case t.entry != id.entry || (t.version != "") != id.isVersions || len(t.windows) == 0:
		return nil
	case id.isVersions:
		return &t.windows[len(t.windows)-1]
	default:
		return t.at(time.Unix(0, id.begin))
	}
}

func (w *window) saved(t *track) saved {
	s := saved{
		Resource: t.resource, Version: t.version, First: t.first, Begin: w.begin, Observations: w.observations, Rest: w.rest,
		Functions: make([]measured, len(w.rows)),
	}
	for i, r := range w.rows {
		s.Functions[i] = measured{r.value, r.share, r.variance}
	}
	return s
}

// Missing reports that a record could not be stored, so that Records returns it again.
func (f *Functions) Missing(record Record) { f.unsaved[record.id] = struct{}{} }
