// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"slices"
	"sync"
	"time"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/kind"
	"github.com/otelcol-profiles/otelcol-profiles/internal/service/senders"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/answers"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/model"
)

// page answers with all that the page needs at each load besides what it draws: the status, the number of services, and
// the profiles of the one that is shown. If there is only one service, that is shown.
func (s *server) page(r *request) (*answer, error) {
	service := r.params.Get("service")
	if err := r.params.Check(); err != nil {
		return nil, err
	}
	status, err := s.statusFields(r)
	if err != nil {
		return nil, err
	}
	infos, err := s.Store.Catalog(r.Context(), "", r.meter)
	if err != nil {
		return nil, err
	}
	services := 0
	for i := range infos {
		if i == 0 || infos[i].Service != infos[i-1].Service {
			services++
		}
	}
	if service == "" && services == 1 {
		service = infos[0].Service
	}
	profiles := []profileJSON{}
	if service != "" {
		profiles = listProfiles(infos, service)
	}
	recent := append([]senders.Outcome{}, senders.Recent(r.now)...)
	return jsonAnswer(map[string]any{
		"status": status, "services": services, "service": service, "profiles": profiles,
		"senders": recent[:min(len(recent), maxSenders)], "troubles": s.troubles.lately(status, r.now),
		"source_link": s.SourceLink,
	})
}

// maxSenders is how many senders the page lists.
const maxSenders = 20

// troubles remembers what the store has refused and dropped lately, as those saw it who asked: the store counts from
// its start.
type troubles struct {
	mu      sync.Mutex
	byCount map[string]trouble
}

type trouble struct {
	base, last int
	at         time.Time
}

// see notes the count of now, and returns what has come until nothing was added for some minutes.
func (t *trouble) see(n int, now time.Time) int {
	if n > t.last {
		if now.Sub(t.at) > senders.Kept {
			t.base = t.last
		}
		t.last, t.at = n, now
	}
	if now.Sub(t.at) > senders.Kept {
		return 0
	}
	return t.last - t.base
}

// lately returns how many profiles or samples the store has refused or dropped, by reason, until nothing has been added
// for some minutes. What is dropped for its age is meant to be.
func (t *troubles) lately(status map[string]any, now time.Time) map[string]int {
	t.mu.Lock()
	defer t.mu.Unlock()
	found := map[string]int{}
	for _, kind := range []string{"refused", "evicted"} {
		for reason, n := range status[kind].(map[string]int) {
			if reason == model.EvictedAge.String() || reason == model.RefusedElsewhere.String() {
				continue
			}
			name := kind + "." + reason
			in := t.byCount[name]
			if n := in.see(n, now); n > 0 {
				found[name] = n
			}
			t.byCount[name] = in
		}
	}
	return found
}

// maxTypes is how many types of a service are listed with their values.
const maxTypes = 64

// types answers with what each type of a service's profiles adds up to, in a time and the one of the same length
// before.
func (s *server) types(r *request) (*answer, error) {
	sel := r.selection()
	if err := r.params.Check(); err != nil {
		return nil, err
	}
	sel.From, sel.Until = r.bounded(&sel)
	infos, err := s.Store.Catalog(r.Context(), sel.Service, r.meter)
	if err != nil {
		return nil, err
	}
	infos = slices.DeleteFunc(infos, func(in answers.ProfileInfo) bool { return in.Service != sel.Service })
	a := r.json()
	a.raw(`{"types":`)
	a.list(min(len(infos), maxTypes), func(i int) { s.typeCost(r, a, sel, &infos[i]) })
	a.format(`,"more":%d}`, max(0, len(infos)-maxTypes))
	return a, a.err
}

func (s *server) typeCost(r *request, a *answer, sel model.Selection, in *answers.ProfileInfo) {
	wide := sel
	wide.Profile, wide.Type, wide.GroupBy = in.Profile, in.Type.String(), ""
	wide.From = max(sel.From-(sel.Until-sel.From), 1)
	t, err := s.Store.Timeline(r.Context(), wide, 2*overviewPoints, r.now)
	if err == nil {
		err = r.meter.Grow(overviewBytes)
	}
	if err != nil {
		a.err = err
		return
	}
	values := t.Groups[0].Values
	split := min(len(values), int((sel.From-t.From+t.Step/2)/t.Step))
	a.format(`{"profile":%s,"type":%s,"unit":%s,"kind":%q,"default":%t,"cost":`,
		quote(in.Profile), quote(in.Type.String()), quote(in.Type.Unit), in.Values, in.Default)
	// Whole steps are added up: the first one begins before the time, the last one ends after it.
	begin, end := t.From+int64(split)*t.Step, t.From+int64(len(values))*t.Step
	now, has := meanOf(values[split:], in, begin, end)
	before, _ := meanOf(values[:split], in, t.From, begin)
	a.cost(cost{now, before}, has)
	a.format(`,"from":%d,"step_ms":%d,"values":`, millis(t.From)+int64(split)*millis(t.Step), millis(t.Step))
	a.values(values[split:])
	a.raw("}")
}

// meanOf returns the mean of a state over the steps where it is known, or how much was added in a second of the part of
// a time that has profiles.
func meanOf(values []float64, in *answers.ProfileInfo, from, until int64) (mean float64, has bool) {
	sum, known := answers.Sum(values)
	covered := min(until, in.Until) - max(from, in.From)
	switch {
	case known == 0:
		return 0, false
	case in.Values == kind.Gauge:
		return sum / float64(known), true
	case covered <= 0:
		return 0, false
	}
	return sum / (float64(covered) / 1e9), true
}
