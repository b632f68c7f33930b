// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/formats"
	"github.com/otelcol-profiles/otelcol-profiles/internal/formats/events"
	"github.com/otelcol-profiles/otelcol-profiles/internal/formats/gotrace"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/compact"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/layouts"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/size"
	"github.com/otelcol-profiles/otelcol-profiles/internal/pprof/decode"
	"github.com/otelcol-profiles/otelcol-profiles/internal/pprof/scan"
	"github.com/otelcol-profiles/otelcol-profiles/internal/service/httpserver"
	"github.com/otelcol-profiles/otelcol-profiles/internal/splunk/records"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/query"
)

// maxInputBytes bounds the size of one file, before and after decompression.
const maxInputBytes = 1 << 30

// message is one message of OTLP profiles, and where it comes from.
type message struct {
	pprofile.Profiles
	// Path is the file. Source names it, and the message within it if there are several.
	Path, Source string
	Format       formats.Format
	// Layout is that of OTLP in protobuf or JSON. Ambiguous reports that an older layout is possible too.
	Layout    string
	Ambiguous bool
	// Bytes is its size, decompressed.
	Bytes int
	// Dropped counts samples that could not be understood, Repaired faults that were repaired. TooShort and Filtered count
	// what the defaults for the format leave out.
	Dropped, Repaired, TooShort, Filtered int
	// Unread counts the events of a recording that have a stack and are not read, by type.
	Unread map[string]int
	// Reasons are why samples were dropped, if the format has several reasons.
	Reasons string
}

// reader reads files of any format.
type reader struct {
	term *terminal
	// at is the time of profiles that state none; 0 leaves them without.
	at pcommon.Timestamp
	// mode is what becomes of Go execution traces, modeEvents or modeAggregated.
	mode string
	// wanted are the profiles that selected returns.
	wanted selection
	// several reports that what is read is added to other files, or compared with them, by pprof.
	several bool
	// Of the current file: how many bytes it may still unpack to, and when it was written, if that is known.
	left     int
	modified time.Time
}

const (
	modeEvents     = "events"
	modeAggregated = "aggregated"
)

func newReader(term *terminal) *reader { return &reader{term: term, mode: modeEvents} }

var errNoFile = errors.New(`a file is missing; "-" is standard input`)

// needFile checks the arguments of a command that reads files.
func needFile(_ *cobra.Command, paths []string) error {
	if len(paths) == 0 {
		return errNoFile
	}
	return nil
}

func (r *reader) flags(cmd *cobra.Command) {
	r.wanted.flags(cmd.Flags())
	cmd.Flags().Func("at", "`TIME` of profiles that state none: now, RFC 3339 or Unix time", func(value string) error {
		t, err := query.ParseTime(value, time.Now())
		r.at = pcommon.Timestamp(t)
		return err
	})
	modes := []string{modeEvents, modeAggregated}
	addChoice(cmd, choice{&r.mode, modes}, "mode", "", "`MODE` for Go execution traces: "+strings.Join(modes, " or "))
}

// readAll reads files, and logs the samples that were left out.
func (r *reader) readAll(paths []string) ([]message, error) {
	if i := slices.Index(paths, "-"); i >= 0 && slices.Contains(paths[i+1:], "-") {
		return nil, errors.New("standard input can be read only once")
	}
	var all []message
	for _, path := range paths {
		messages, err := r.read(path)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", nameOf(path), err)
		}
		left, dropped := 0, 0
		for _, m := range messages {
			left, dropped = left+m.SampleCount(), dropped+m.Dropped
			if m.Dropped > 0 || m.Repaired > 0 {
				r.term.logf("%s: %d samples could not be understood and were left out%s, %d faults were repaired",
					m.Source, m.Dropped, inParentheses(m.Reasons), m.Repaired)
			}
			if m.TooShort > 0 {
				r.term.logf("%s: %d intervals below %v were left out; --mode aggregated sums them too", m.Source, m.TooShort,
					gotrace.DefaultOptions().MinDuration)
			}
			if m.Filtered > 0 {
				r.term.logf(
					"%s: %d samples of idle threads, of the runtime's own goroutines or of those that never ran were left out",
					m.Source, m.Filtered)
			}
			if len(m.Unread) > 0 {
				r.term.logf("%s: events of these types have stacks, and are not read: %s", m.Source, countsOfTypes(m.Unread))
			}
			if m.Ambiguous {
				r.term.logf("%s: reads as layout %s, but an older one is possible", m.Source, m.Layout)
			}
		}
		if err := nothingLeft(left, dropped); err != nil {
			return nil, fmt.Errorf("%s: %w", nameOf(path), err)
		}
		all = append(all, messages...)
	}
	return all, nil
}

// countsOfTypes lists types with their numbers.
func countsOfTypes(counts map[string]int) string {
	var list []string
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		list = append(list, fmt.Sprintf("%s %d", name, counts[name]))
	}
	return strings.Join(list, ", ")
}

func inParentheses(s string) string {
	if s == "" {
		return ""
	}
	return " (" + s + ")"
}

// nothingLeft returns an error if every sample of the input was left out.
func nothingLeft(left, dropped int) error {
	if left > 0 || dropped == 0 {
		return nil
	}
	return fmt.Errorf("all %d samples were left out, since they are malformed", dropped)
}

func nameOf(path string) string {
	if path == "-" {
		return "standard input"
	}
	return path
}

// read returns the messages of a file, at least one.
func (r *reader) read(path string) ([]message, error) {
	data, err := r.open(path)
	if wrapped, ok := errors.AsType[*os.PathError](err); ok {
		err = wrapped.Err // the caller names the path
	}
	if err != nil {
		return nil, err
	}
	r.left = maxInputBytes
	messages, err := r.decode(data, 0)
	if err == nil && len(messages) == 0 {
		err = errors.New("the file is empty")
	}
	for i := range messages {
		m := &messages[i]
		m.Path = path
		if m.Source = nameOf(path); len(messages) > 1 {
			m.Source += " message " + strconv.Itoa(i+1)
		}
		r.setTime(m.Profiles)
	}
	return messages, err
}

func (r *reader) open(path string) ([]byte, error) {
	in := r.term.in
	r.modified = time.Time{}
	switch target := asURL(path); {
	case target != "":
		body, err := get(target)
		if err != nil {
			return nil, err
		}
		defer body.Close()
		in = body
	case path != "-":
		file, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		defer file.Close()
		if info, err := file.Stat(); err == nil && info.Mode().IsRegular() {
			r.modified = info.ModTime()
		}
		in = file
	}
	data, err := io.ReadAll(io.LimitReader(in, maxInputBytes+1))
	if err == nil && len(data) > maxInputBytes {
		err = fmt.Errorf("there are more than %d bytes", maxInputBytes)
	}
	return data, err
}

// address matches a URL without its scheme.
var address = regexp.MustCompile(`^([\w.-]+|\[[\da-f:.]+\]):\d{1,5}(/|$)`)

// asURL returns a URL as go tool pprof completes it: with http:// before host:port, and with the path of a Go program's
// processor time if it has none. It returns "" for a file.
func asURL(source string) string {
	if address.MatchString(source) {
		if _, err := os.Stat(source); err != nil {
			source = "http://" + source
		}
	}
	if !strings.HasPrefix(source, "http://") && !strings.HasPrefix(source, "https://") {
		return ""
	}
	if target, err := url.Parse(source); err == nil && (target.Path == "" || target.Path == "/") {
		target.Path = "/debug/pprof/profile"
		return target.String()
	}
	return source
}

// fetchTime is how long a server may take for a profile, in addition to the seconds for which it records.
const fetchTime = time.Minute

// get fetches a URL.
func get(source string) (io.ReadCloser, error) {
	target, err := url.Parse(source)
	if err != nil {
		return nil, err
	}
	seconds, _ := strconv.Atoi(target.Query().Get("seconds"))
	client := http.Client{Timeout: fetchTime + time.Duration(max(seconds, 0))*time.Second}
	response, err := client.Get(source)
	if err != nil {
		if wrapped, ok := errors.AsType[*url.Error](err); ok {
			err = wrapped.Err // the caller names the URL
		}
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		start, _ := io.ReadAll(io.LimitReader(response.Body, 200))
		return nil, errors.Join(errors.New(strings.TrimSpace(response.Status+" "+string(start))), response.Body.Close())
	}
	return response.Body, nil
}

func (r *reader) setTime(pd pprofile.Profiles) {
	if r.at == 0 {
		return
	}
	for p := range otlp.Profiles(pd) {
		if p.Time() == 0 {
			p.SetTime(r.at)
		}
	}
}

// maxPacked is how many times a file may be compressed: a compressed file of compressed messages counts as two.
const maxPacked = 3

// decode reads data of any format. unpacked counts how often it was unpacked.
func (r *reader) decode(data []byte, unpacked int) ([]message, error) {
	if len(data) == 0 {
		return nil, nil
	}
	if unpacked > maxPacked {
		return nil, fmt.Errorf("the file is compressed more than %d times", maxPacked)
	}
	format := formats.Sniff(data)
	switch format {
	case formats.Gzip, formats.Zstd, formats.LZ4:
		if seen := formats.Sniff(decode.Head(data, formats.SniffBytes)); formats.IsStreamed(seen) {
			m, err := r.decodeOne(seen, data)
			return []message{m}, err
		}
		plain, err := decode.Uncompress(data, r.left, nil)
		if err != nil {
			return nil, err
		}
		r.left -= len(plain)
		return r.decode(plain, unpacked+1)
	case formats.OTLPJSON, formats.OTLPLogsJSON:
		return r.decodeJSON(data)
	case formats.Unknown:
		if parts := lengthPrefixed(data); parts != nil {
			return r.decodeParts(parts, unpacked+1)
		}
	}
	m, err := r.decodeOne(format, data)
	if err != nil {
		return nil, err
	}
	return []message{m}, nil
}

// decodeJSON reads a sequence of JSON values, which is how the Collector's file exporter writes messages.
func (r *reader) decodeJSON(data []byte) ([]message, error) {
	var messages []message
	for decoder := json.NewDecoder(bytes.NewReader(data)); ; {
		var value json.RawMessage
		err := decoder.Decode(&value)
		if errors.Is(err, io.EOF) {
			return messages, nil
		}
		if err == nil {
			var m message
			if m, err = r.decodeOne(formats.Sniff(value), value); err == nil {
				messages = append(messages, m)
			}
		}
		if err != nil {
			return nil, fmt.Errorf("message %d: %w", len(messages)+1, err)
		}
	}
}

// lengthPrefixed splits a file in which each message follows its length, in four bytes: the Collector's file exporter
// writes such files for protobuf and for compressed messages. It returns nil for any other file.
func lengthPrefixed(data []byte) (parts [][]byte) {
	for len(data) > 0 {
		if len(data) < 4 {
			return nil
		}
		n := binary.BigEndian.Uint32(data)
		if n == 0 || int64(n) > int64(len(data)-4) {
			return nil
		}
		parts, data = append(parts, data[4:4+n]), data[4+n:]
	}
	return parts
}

func (r *reader) decodeParts(parts [][]byte, unpacked int) ([]message, error) {
	var all []message
	for i, part := range parts {
		messages, err := r.decode(part, unpacked)
		if err != nil {
			return nil, fmt.Errorf("message %d: %w", i+1, err)
		}
		all = append(all, messages...)
	}
	return all, nil
}

func (r *reader) decodeOne(format formats.Format, data []byte) (m message, err error) {
	m = message{Format: format, Bytes: len(data)}
	meter := &size.Meter{Context: r.term.ctx}
	switch format {
	case formats.OTLP, formats.OTLPJSON:
		unmarshal := layouts.Unmarshal
		if format == formats.OTLPJSON {
			unmarshal = layouts.UnmarshalJSON
		}
		var stats layouts.Stats
		m.Profiles, stats, err = unmarshal(data, meter)
		m.Layout, m.Ambiguous = stats.Layout.String(), stats.Ambiguous
		m.Dropped, m.Repaired = stats.DroppedSamples(), otlp.Total(stats.Repaired[:])
		m.Reasons = httpserver.Reasons[layouts.DropReason](stats.Dropped[:])
	case formats.OTLPLogs, formats.OTLPLogsJSON:
		err = m.decodeLogs(data, meter)
	case formats.Pprof, formats.Unknown:
		// Its error describes the unknown format.
		var stats decode.Stats
		m.Profiles, stats, err = decode.Decode(data, decode.Options{
			Limits: scan.Limits{MaxProfileBytes: maxInputBytes}, TimestampLabels: decode.DefaultTimestampLabels(), Meter: meter,
		})
		m.Format = formats.Pprof
		m.Dropped, m.Repaired = stats.DroppedSamples(), otlp.Total(stats.Repaired[:])
		m.Reasons = httpserver.Reasons[scan.DropReason](stats.Dropped[:])
	default:
		var stats formats.Stats
		options := formats.Options{Options: events.Options{Anchor: r.anchor(), Meter: meter},
			GoTrace: gotrace.DefaultOptions()}
		options.GoTrace.Aggregate = r.mode == modeAggregated
		options.GoTrace.MaxLegacyBytes = maxInputBytes
		m.Profiles, stats, err = formats.Decode(data, format, options)
		m.Dropped, m.Repaired = stats.Dropped, stats.InvalidUTF8+stats.Truncated+stats.LeftOutAttributes
		m.TooShort, m.Filtered, m.Unread = stats.TooShort, stats.Filtered, stats.Unread
	}
	return m, err
}

// anchor returns when a recording with its own clock ended: --at, or else when its file was written, which is a guess.
func (r *reader) anchor() events.Anchor {
	if r.at != 0 || r.modified.Unix() <= 0 {
		return events.Anchor{EndNanos: uint64(r.at)}
	}
	return events.Anchor{EndNanos: uint64(r.modified.UnixNano()), Guess: "file_modified"}
}

// decodeLogs reads profiles out of log records, as Splunk's agents and the exporter profiles_to_logs write them.
func (m *message) decodeLogs(data []byte, meter *size.Meter) error {
	var unmarshaler plog.Unmarshaler = &plog.ProtoUnmarshaler{}
	if m.Format == formats.OTLPLogsJSON {
		unmarshaler = &plog.JSONUnmarshaler{}
	}
	logs, err := unmarshaler.UnmarshalLogs(data)
	if err != nil {
		return err
	}
	result := records.Translate(logs, records.Options{Limits: scan.Limits{MaxProfileBytes: maxInputBytes}, Meter: meter})
	if result.Err != nil {
		return result.Err
	}
	m.Profiles = result.Profiles
	m.Dropped, m.Repaired = otlp.Total(result.Dropped[:])+len(result.Rejected), otlp.Total(result.Repaired[:])
	m.Reasons = httpserver.Reasons[scan.DropReason](result.Dropped[:])
	switch {
	case len(result.Rejected) > 0 && result.Samples == 0:
		return result.Rejected[0]
	case result.Profiling == 0:
		return fmt.Errorf("none of its %d log records carries a profile", result.Others)
	}
	return nil
}

// selected returns the wanted profiles of messages in one that keeps the rules of OTLP.
func (r *reader) selected(messages ...message) (pprofile.Profiles, error) {
	pd, err := r.cleaned(messages...)
	if err == nil {
		err = r.wanted.apply(pd)
	}
	return pd, err
}

// summed returns the selected profiles, whose values of one type add up: see keepNewest and addTime.
func (r *reader) summed(always bool, messages []message) (pprofile.Profiles, error) {
	pd, err := r.comparable(always, messages)
	if err == nil {
		if n := keepNewest(pd); n > 0 {
			r.term.logf("%d states and totals were left out, since their resources have newer ones", n)
		}
	}
	return pd, err
}

// comparable returns the selected profiles, whose values of one type have the same weight: see addTime. A type that is
// asked for is that.
func (r *reader) comparable(always bool, messages []message) (pprofile.Profiles, error) {
	pd, err := r.selected(messages...)
	if err == nil && r.wanted.sampleType == "" {
		addTime(pd, always)
	}
	return pd, err
}

// cleaned returns all messages in one that keeps the rules of OTLP, and logs what was left out. If that is everything,
// it is an error.
func (r *reader) cleaned(messages ...message) (pprofile.Profiles, error) {
	var batch compact.Batch
	all := make([]pprofile.Profiles, len(messages))
	for i, m := range messages {
		all[i] = m.Profiles
	}
	merged := batch.Merge(all)
	stats := batch.Stats()
	dropped := otlp.Total(stats.Dropped[:])
	if dropped > 0 {
		r.term.logf("%d of %d samples were left out, since they are malformed; profiletool check lists the faults",
			dropped, stats.Samples)
	}
	return merged, nothingLeft(merged.SampleCount(), dropped)
}
