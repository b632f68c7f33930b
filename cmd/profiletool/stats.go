// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/compact"
	profilekind "github.com/otelcol-profiles/otelcol-profiles/internal/otlp/kind"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/wire"
)

func newStats(term *terminal) *cobra.Command {
	r := newReader(term)
	return &cobra.Command{
		Use:     "stats FILE...",
		Short:   "Show what messages consist of, and what dictionary_dedup would save",
		GroupID: groupFiles,
		Long: `Stats shows for each message its format and layout, how many profiles and samples it has and in which shape, what the
values of each type are (delta, gauge or cumulative), the entries and bytes of each table of the dictionary, and both
again as the processor dictionary_dedup would write the message.
Bytes are those of today's layout, before compression.`,
		Args: needFile,
		RunE: func(_ *cobra.Command, paths []string) error {
			messages, err := r.readAll(paths)
			if err != nil {
				return err
			}
			for i, m := range messages {
				if i > 0 {
					fmt.Fprintln(term.out)
				}
				if err := printStats(term, m); err != nil {
					return err
				}
			}
			if len(messages) > 1 {
				before := 0
				all := make([]pprofile.Profiles, len(messages))
				for i, m := range messages {
					all[i] = m.Profiles
					before += sizer.ProfilesSize(m.Profiles)
				}
				fmt.Fprintf(term.out, "\nall %d messages: %d bytes; merged %s\n", len(messages), before,
					saving(before, sizer.ProfilesSize(compactly(all...))))
			}
			return nil
		},
	}
}

var sizer pprofile.ProtoMarshaler

// compactly returns messages as dictionary_dedup writes them together.
func compactly(messages ...pprofile.Profiles) pprofile.Profiles {
	var batch compact.Batch
	batch.Reset(compacted)
	for _, m := range messages {
		batch.Add(m)
	}
	return batch.Whole()
}

func saving(before, after int) string {
	if before == 0 {
		return fmt.Sprintf("%d bytes", after)
	}
	return fmt.Sprintf("%d bytes (%+.1f %%)", after, 100*float64(after-before)/float64(before))
}

// counts are the numbers of a message's items.
type counts struct {
	resources, scopes, profiles, samples, observations int
	// shapes counts samples by what they have: values alone, values and timestamps, timestamps alone, neither.
	shapes      [4]int
	first, last uint64
}

var shapeNames = [4]string{"values alone", "values and timestamps", "timestamps alone", "neither"}

func countsOf(pd pprofile.Profiles) (c counts) {
	c.resources = pd.ResourceProfiles().Len()
	for _, rp := range pd.ResourceProfiles().All() {
		c.scopes += rp.ScopeProfiles().Len()
	}
	for p := range otlp.Profiles(pd) {
		c.profiles++
		c.samples += p.Samples().Len()
		if start := uint64(p.Time()); start != 0 {
			if c.first == 0 || start < c.first {
				c.first = start
			}
			c.last = max(c.last, start+p.DurationNano())
		}
		for _, s := range p.Samples().All() {
			values, timestamps := s.Values().Len(), s.TimestampsUnixNano().Len()
			c.observations += max(values, timestamps)
			switch {
			case values > 0 && timestamps > 0:
				c.shapes[1]++
			case values > 0:
				c.shapes[0]++
			case timestamps > 0:
				c.shapes[2]++
			default:
				c.shapes[3]++
			}
		}
	}
	return c
}

// tableBytes returns the encoded size of each table, in the order of compact.Tables, which is that of the dictionary's
// fields.
func tableBytes(pd pprofile.Profiles) (sizes [len(compact.Tables)]int, err error) {
	data, err := sizer.MarshalProfiles(pd)
	for field := wire.New(data); field.Next(); {
		const dictionary = 2
		if field.Number != dictionary {
			continue
		}
		for entry := wire.New(field.Content); entry.Next(); {
			sizes[entry.Number-1] += protowire.SizeTag(entry.Number) + protowire.SizeBytes(len(entry.Content))
		}
	}
	return sizes, err
}

// count returns a number of things in words.
func count(n int, thing string) string {
	if n != 1 {
		thing += "s"
	}
	return fmt.Sprint(n, " ", thing)
}

func printStats(term *terminal, m message) error {
	c := countsOf(m.Profiles)
	format := string(m.Format)
	if m.Layout != "" {
		format += ", layout " + m.Layout
	}
	fmt.Fprintf(term.out, "%s: %s, %d bytes\n", m.Source, format, m.Bytes)
	fmt.Fprintf(term.out, "%s, %s, %s, %s, %s\n", count(c.resources, "resource"), count(c.scopes, "scope"),
		count(c.profiles, "profile"), count(c.samples, "sample"), count(c.observations, "observation"))
	for i, n := range c.shapes {
		if n > 0 {
			fmt.Fprintf(term.out, "%s with %s\n", count(n, "sample"), shapeNames[i])
		}
	}
	if len(m.Unread) > 0 {
		fmt.Fprintf(term.out, "events not read: %s\n", countsOfTypes(m.Unread))
	}
	if c.first != 0 {
		fmt.Fprintf(term.out, "from %s for %s\n", unixTime(c.first).Format(time.RFC3339Nano), time.Duration(c.last-c.first))
	}
	if err := printKinds(term, m.Profiles); err != nil {
		return err
	}
	deduped := compactly(m.Profiles)
	w := tabwriter.NewWriter(term.out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "table\tentries\tbytes\tdeduplicated\tbytes\t")
	entries, after := compact.EntriesOf(m.Dictionary()), compact.EntriesOf(deduped.Dictionary())
	bytes, err := tableBytes(m.Profiles)
	bytesAfter, errAfter := tableBytes(deduped)
	if err = errors.Join(err, errAfter); err != nil {
		return err
	}
	for i, name := range compact.Tables {
		fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%d\t\n", name, entries[i], bytes[i], after[i], bytesAfter[i])
	}
	size, sizeAfter := sizer.ProfilesSize(m.Profiles), sizer.ProfilesSize(deduped)
	fmt.Fprintf(w, "profiles\t%d\t%d\t%d\t%d\t\n", c.samples, size-otlp.Total(bytes[:]), countsOf(deduped).samples,
		sizeAfter-otlp.Total(bytesAfter[:]))
	if err := w.Flush(); err != nil {
		return err
	}
	_, err = fmt.Fprintf(term.out, "%d bytes; deduplicated %s\n", size, saving(size, sizeAfter))
	return err
}

// printKinds lists the kinds of profiles of a message: their names and types, and what their values are over time.
func printKinds(term *terminal, pd pprofile.Profiles) error {
	w := tabwriter.NewWriter(term.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "profile\ttype\tvalues\tprofiles")
	for _, g := range groupsOf(pd, false) {
		values := map[profilekind.Values]int{}
		for _, p := range g.profiles {
			values[profilekind.ValuesOfProfile(p, pd.Dictionary())]++
		}
		for _, v := range slices.Sorted(maps.Keys(values)) {
			fmt.Fprintf(w, "%s\t%s/%s\t%s\t%d\n", g.Profile, g.Type, g.Unit, v, values[v])
		}
	}
	return w.Flush()
}

func unixTime(nanos uint64) time.Time { return time.Unix(0, int64(nanos)).UTC() }
