// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package senders remembers who has sent to this process lately, and why it was refused, for an operator whose page is
// empty. Servers call Note for each request that brings data; Recent lists these notes.
package senders

import (
	"cmp"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/hashicorp/golang-lru/v2/simplelru"
)

const (
	// Kept is for how long an outcome is listed.
	Kept = 10 * time.Minute
	// maxOutcomes bounds the list; the oldest make room. maxText bounds each of its strings.
	maxOutcomes = 64
	maxText     = 512
)

// Request is what outcomes are distinguished by.
type Request struct {
	// Address is that of the sender, without its port; Endpoint the port or path that it sent to.
	Address  string `json:"address"`
	Endpoint string `json:"endpoint"`
	// Status is that of HTTP, or the one that corresponds to gRPC's.
	Status int `json:"status"`
}

// Outcome is what became of the requests of a sender.
type Outcome struct {
	Request
	// Reason is the latest answer to a refused one.
	Reason string    `json:"reason"`
	Count  int       `json:"count"`
	Last   time.Time `json:"last"`
}

// IsRefused reports whether the sender has to do something.
func (o *Outcome) IsRefused() bool { return o.Status >= 400 }

// Log is a bounded list of outcomes. The zero value is empty.
type Log struct {
	mu  sync.Mutex
	all *simplelru.LRU[Request, *Outcome]
}

// Of the process.
var process Log

// Note adds the outcome of a request to those of the process.
func Note(r Request, reason string, now time.Time) { process.Note(r, reason, now) }

// Recent lists the outcomes of the process.
func Recent(now time.Time) []Outcome { return process.Recent(now) }

// Note adds the outcome of a request.
func (l *Log) Note(r Request, reason string, now time.Time) {
	r.Address, r.Endpoint = text(r.Address), text(r.Endpoint)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.all == nil {
		l.all, _ = simplelru.NewLRU[Request, *Outcome](maxOutcomes, nil) // the size is valid
	}
	o, ok := l.all.Get(r)
	if !ok {
		o = &Outcome{Request: r}
		l.all.Add(r, o)
	}
	if now.Sub(o.Last) > Kept {
		o.Count = 0
	}
	o.Count++
	o.Last = now
	if r.Status >= 400 {
		o.Reason = text(reason)
	}
}

// Recent lists the outcomes of the last minutes: refused ones first, the latest before the others.
func (l *Log) Recent(now time.Time) []Outcome {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.all == nil {
		return nil
	}
	var list []Outcome
	for _, o := range l.all.Values() {
		if now.Sub(o.Last) <= Kept {
			list = append(list, *o)
		}
	}
	rank := func(o *Outcome) int {
		if o.IsRefused() {
			return 0
		}
		return 1
	}
	slices.SortFunc(list, func(a, b Outcome) int {
		return cmp.Or(cmp.Compare(rank(&a), rank(&b)), b.Last.Compare(a.Last), strings.Compare(a.Address, b.Address),
			strings.Compare(a.Endpoint, b.Endpoint))
	})
	return list
}

// text returns the printable characters of a string, at most maxText bytes with a mark where it is cut: an answer can
// be protobuf.
func text(s string) string {
	s = s[:min(len(s), 4*maxText)]
	s = strings.Map(func(r rune) rune {
		if r == unicode.ReplacementChar || !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, s)
	s = strings.Join(strings.Fields(s), " ")
	if len(s) <= maxText {
		return s
	}
	return strings.ToValidUTF8(s[:maxText-len("…")], "") + "…"
}
