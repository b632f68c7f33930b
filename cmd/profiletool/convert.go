// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/google/pprof/profile"
	"github.com/spf13/cobra"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/compact"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/resolved"
	"github.com/otelcol-profiles/otelcol-profiles/internal/pprof/encode"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/flamefile"
)

// The formats that convert writes.
const (
	outPprof      = "pprof"
	outOTLP       = "otlp"
	outJSON       = "otlp-json"
	outCollapsed  = "collapsed"
	outSpeedscope = "speedscope"
	outText       = "text"
)

// compacted is how the processor dictionary_dedup writes messages.
var compacted = compact.Options{OrderByFrequency: true, CombineSamples: true}

// extensions are those of the files that --out writes.
var extensions = map[string]string{
	outPprof: ".pb.gz", outOTLP: ".otlp", outJSON: ".jsonl", outCollapsed: ".collapsed", outSpeedscope: ".speedscope.json",
	outText: ".txt",
}

// choice is the value of a flag that accepts only a few.
type choice struct {
	value   *string
	allowed []string
}

func (c choice) Type() string   { return "format" }
func (c choice) String() string { return *c.value }
func (c choice) Set(value string) error {
	if !slices.Contains(c.allowed, value) {
		return errors.New("must be one of " + strings.Join(c.allowed, ", "))
	}
	*c.value = value
	return nil
}

// addChoice adds a flag. Its default is the value that it has.
func addChoice(cmd *cobra.Command, c choice, name, shorthand, usage string) {
	cmd.Flags().VarP(c, name, shorthand, usage)
	// the flag exists
	_ = cmd.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(c.allowed, cobra.ShellCompDirectiveNoFileComp))
}

// addPairsFlag adds a flag for NAME=VALUE that may be repeated.
func addPairsFlag(cmd *cobra.Command, pairs *map[string]string, name, usage string) {
	cmd.Flags().StringToStringVar(pairs, name, nil, usage+"; may be repeated")
	cmd.Flags().Lookup(name).DefValue = "" // otherwise the help shows []
}

func newConvert(term *terminal) *cobra.Command {
	var out string
	c := converter{term: term}
	r := newReader(term)
	cmd := &cobra.Command{
		Use:     "convert -o FORMAT FILE...",
		Short:   "Write profiles in another format, or several files as one",
		GroupID: groupFiles,
		Long: `Convert reads files of any format, and writes all of their profiles in another.

  pprof        gzip, one profile: those of several files or processes are merged
  otlp         protobuf in today's layout, one message with one compact dictionary: each entry once, equal resources,
               scopes and samples combined
  otlp-json    the same as a line of JSON
  collapsed    a line for each stack with its value, of one sample type
  speedscope   a file for https://www.speedscope.app, with all sample types
  text         resources, scopes, profiles and samples, with names instead of indices: each sample with its values,
               value@timestamp or @timestamp, its attributes and its stack, leaf first

A pprof has one kind of profile: if there are several, choose one by --service and --profile. Collapsed stacks have
one sample type: without --profile and --type that of process_cpu, or else of the first kind, that is shown first
elsewhere, too.
With --out, each input becomes files of its own in that folder, one for each kind.
With --max-bytes, messages of OTLP are written in parts, for a backend with a limit: to --out, or as lines of JSON. Each
part has the entries of the dictionary that it needs. Only a part with a single observation, or whose samples share an
entry that is too large, can be larger.`,
		Example: `  profiletool convert -o pprof profiles.jsonl --service shop --profile process_cpu > cpu.pb.gz
  curl -s localhost:6060/debug/pprof/heap | profiletool convert -o otlp-json --at now -`,
		Args: needFile,
		RunE: func(cmd *cobra.Command, paths []string) error {
			isOTLP := c.format == outOTLP || c.format == outJSON
			switch {
			case c.format == "":
				return errors.New("-o must name the output format: " +
					strings.Join(cmd.Flags().Lookup("output").Value.(choice).allowed, ", "))
			case c.maxBytes < 0 || c.maxBytes > 0 && !isOTLP:
				return errors.New("--max-bytes must be positive, and is for otlp and otlp-json")
			}
			if out != "" {
				return c.files(r, out, paths)
			}
			messages, err := r.readAll(paths)
			if err != nil {
				return err
			}
			pd, err := c.selected(r, messages)
			if err != nil {
				return err
			}
			file, err := c.only(pd)
			if err != nil {
				return err
			}
			return file.write(term.out)
		},
	}
	formats := []string{outPprof, outOTLP, outJSON, outCollapsed, outSpeedscope, outText}
	addChoice(cmd, choice{&c.format, formats}, "output", "o", "output `FORMAT`: "+strings.Join(formats, ", "))
	cmd.Flags().StringVar(&out, "out", "", "write files to this `FOLDER`, not to standard output")
	cmd.Flags().IntVar(&c.maxBytes, "max-bytes", 0, "largest size of a message of OTLP: `N` bytes of protobuf")
	r.flags(cmd)
	return cmd
}

type converter struct {
	term   *terminal
	format string
	// maxBytes bounds messages of OTLP; 0 means one message.
	maxBytes int
}

// selected returns the selected profiles, and the time of samples that a pprof or stacks would add up.
func (c *converter) selected(r *reader, messages []message) (pprofile.Profiles, error) {
	switch c.format {
	case outPprof, outCollapsed, outSpeedscope:
		return r.summed(false, messages)
	}
	return r.selected(messages...)
}

// outFile is a file to be written. kind describes its profiles. Stacks are written as they are formatted: a few bytes
// can have very many frames.
type outFile struct {
	kind  string
	write func(io.Writer) error
	// of is the kind of collapsed stacks.
	of candidate
}

func (f outFile) candidate() candidate { return f.of }
func (f outFile) String() string       { return f.kind }

func fileOf(kind string, content []byte) outFile {
	return outFile{kind: kind, write: func(w io.Writer) error {
		_, err := w.Write(content)
		return err
	}}
}

// only returns all profiles as one file, or an error that lists the choices if they need several.
func (c *converter) only(pd pprofile.Profiles) (outFile, error) {
	files, err := c.convert(pd)
	switch {
	case err != nil:
		return outFile{}, err
	case len(files) == 0:
		return outFile{}, errors.New("there are no profiles")
	case c.format == outCollapsed:
		return chosen(c.term, "--profile and --type", files), nil
	case c.format == outJSON:
		return outFile{write: func(w io.Writer) (err error) {
			for i := 0; i < len(files) && err == nil; i++ {
				err = files[i].write(w)
			}
			return err
		}}, nil
	case c.format == outOTLP && len(files) > 1:
		return outFile{}, errors.New("--out must name a folder: parts of protobuf cannot share standard output")
	case len(files) > 1:
		kinds := make([]string, len(files))
		for i, f := range files {
			kinds[i] = f.kind
		}
		return outFile{}, fmt.Errorf("%s holds one of these; choose by --profile, or write all by --out:\n  %s",
			c.format, strings.Join(kinds, "\n  "))
	}
	return files[0], nil
}

// messages returns all profiles as one message of OTLP in its smallest form, or in parts of at most maxBytes.
func (c *converter) messages(pd pprofile.Profiles) (files []outFile, err error) {
	options := compacted
	if c.maxBytes > 0 {
		options.MaxBytes, options.MaxGrowth = c.maxBytes, math.MaxInt32 // parts may repeat as much as the limit takes
	}
	var batch compact.Batch
	batch.Reset(options)
	batch.Consume(pd)
	for part := range batch.Parts() {
		name, message := fmt.Sprintf("%04d", len(files)+1), []byte(nil)
		if c.format == outJSON {
			message, err = (&pprofile.JSONMarshaler{}).MarshalProfiles(part.Profiles)
			message = append(message, '\n')
		} else {
			message, err = sizer.MarshalProfiles(part.Profiles)
		}
		if err != nil {
			return nil, err
		}
		if part.Oversized {
			c.term.logf("part %s is larger than --max-bytes: its samples share what is too large", name)
		}
		files = append(files, fileOf(name, message))
	}
	return files, nil
}

// convert returns as many files as the format needs.
func (c *converter) convert(pd pprofile.Profiles) ([]outFile, error) {
	switch c.format {
	case outPprof:
		return c.pprofs(pd)
	case outOTLP, outJSON:
		return c.messages(pd)
	case outText:
		return []outFile{{write: func(w io.Writer) error { return resolved.Write(w, pd) }}}, nil
	}
	groups := groupsOf(pd, c.format == outSpeedscope)
	profiles := make([][]pprofile.Profile, len(groups))
	for i, g := range groups {
		profiles[i] = g.profiles
	}
	lists, err := flamefile.OfProfiles(pd.Dictionary(), profiles...)
	if err != nil || len(lists) == 0 {
		return nil, err
	}
	if c.format == outSpeedscope {
		for i, g := range groups {
			lists[i].Name = g.String()
		}
		return []outFile{{write: func(w io.Writer) error { return flamefile.Speedscope(w, lists[0].Name, lists...) }}}, nil
	}
	files := make([]outFile, len(lists))
	for i, stacks := range lists {
		g := groups[i]
		files[i] = outFile{
			kind: strings.TrimSpace(g.String()), of: candidate{g.kind, g.isDefault},
			write: func(w io.Writer) error { return flamefile.Collapsed(w, stacks) },
		}
	}
	return files, nil
}

// pprofs returns a pprof for each kind of profile: those of one kind with the same sample types are merged.
func (c *converter) pprofs(pd pprofile.Profiles) ([]outFile, error) {
	profiles, err := pprofsOf(c.term, pd)
	files := make([]outFile, len(profiles))
	for i, p := range profiles {
		var b bytes.Buffer
		if err := p.profile.Write(&b); err != nil {
			return nil, err
		}
		files[i] = fileOf(p.kind, b.Bytes())
	}
	return files, err
}

// pprofOf is a pprof of one kind: the name of a profile, and its sample types.
type pprofOf struct {
	// kind is the name with the sample types.
	name, kind string
	profile    *profile.Profile
}

func (p pprofOf) candidate() candidate { return candidate{kind: kind{Profile: p.name}} }
func (p pprofOf) String() string       { return p.kind }

func pprofsOf(term *terminal, pd pprofile.Profiles) ([]pprofOf, error) {
	payloads, stats, err := encode.Encode(pd)
	if err != nil {
		return nil, err
	}
	if stats.Dropped > 0 {
		term.logf("%d samples were left out: the pprof would be many times as large as the input", stats.Dropped)
	}
	type key struct {
		name, kind string
		period     profile.ValueType // pprof does not merge profiles of different periods
	}
	var keys []key
	byKind := map[key][]*profile.Profile{}
	kinds, resource, scope := kinds{dict: pd.Dictionary()}, -1, -1
	for _, payload := range payloads {
		p, err := profile.ParseUncompressed(payload.Bytes)
		if err != nil {
			return nil, err
		}
		renameTypes(p)
		rp := pd.ResourceProfiles().At(payload.ResourceIndex)
		sp := rp.ScopeProfiles().At(payload.ScopeIndex)
		if payload.ResourceIndex != resource || payload.ScopeIndex != scope {
			resource, scope = payload.ResourceIndex, payload.ScopeIndex
			kinds.begin(rp.Resource(), sp)
		}
		name := kinds.of(sp.Profiles().At(slices.Min(payload.ProfileIndices))).Profile
		k := key{name: name, kind: name}
		for _, t := range p.SampleType {
			k.kind += " " + t.Type + "/" + t.Unit
		}
		if p.PeriodType != nil {
			k.period = profile.ValueType{Type: p.PeriodType.Type, Unit: p.PeriodType.Unit}
		}
		if byKind[k] == nil {
			keys = append(keys, k)
		}
		byKind[k] = append(byKind[k], p)
	}
	out := make([]pprofOf, len(keys))
	for i, k := range keys {
		out[i] = pprofOf{name: k.name, kind: k.kind, profile: byKind[k][0]}
		if len(byKind[k]) > 1 {
			if out[i].profile, err = profile.Merge(byKind[k]); err != nil {
				return nil, fmt.Errorf("merge %s: %w", k.kind, err)
			}
			term.logf("%d profiles merged: %s", len(byKind[k]), k.kind)
		}
	}
	return out, nil
}

// renameTypes adds the unit to the names of sample types that share a name: pprof refuses profiles with two types of
// one name. async-profiler writes itimer/count and itimer/nanoseconds.
func renameTypes(p *profile.Profile) {
	count := map[string]int{}
	for _, t := range p.SampleType {
		count[t.Type]++
	}
	for _, t := range p.SampleType {
		if count[t.Type] > 1 {
			t.Type += "_" + t.Unit
		}
	}
}

// files converts each input on its own.
func (c *converter) files(r *reader, folder string, paths []string) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	written := map[string]bool{}
	for _, path := range paths {
		messages, err := r.readAll([]string{path})
		if err != nil {
			return err
		}
		pd, err := c.selected(r, messages)
		if err != nil {
			return fmt.Errorf("%s: %w", nameOf(path), err)
		}
		files, err := c.convert(pd)
		if err != nil {
			return fmt.Errorf("%s: %w", nameOf(path), err)
		}
		base := baseName(path)
		for _, f := range files {
			name := base
			if len(files) > 1 {
				name += "." + fileName(f.kind)
			}
			unique := name
			for n := 2; written[unique]; n++ {
				unique = name + "-" + strconv.Itoa(n)
			}
			written[unique] = true
			name = filepath.Join(folder, unique+extensions[c.format])
			size, err := writeFile(name, f.write)
			if err != nil {
				return err
			}
			c.term.logf("%s: %d bytes", name, size)
		}
	}
	return nil
}

// writeFile writes a file and returns its size. It removes one that it cannot complete.
func writeFile(name string, write func(io.Writer) error) (size int64, err error) {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return 0, err
	}
	err = write(f)
	if err == nil {
		size, err = f.Seek(0, io.SeekCurrent)
	}
	if err = errors.Join(err, f.Close()); err != nil {
		_ = os.Remove(name) // the first error is the cause
	}
	return size, err
}

// baseName is a path's last part without its extensions.
func baseName(path string) string {
	if path == "-" {
		return "stdin"
	}
	name, _, _ := strings.Cut(filepath.Base(path), ".")
	return fileName(name)
}

// fileName replaces the characters that a file's name should not have.
func fileName(s string) string {
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune("/\\: \x00", r) {
			return '_'
		}
		return r
	}, s)
}
