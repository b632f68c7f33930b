// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package targets

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/discovery/targetgroup"
	"github.com/prometheus/prometheus/model/labels"
)

// maxExamples bounds JobReport.Examples.
const maxExamples = 100

// maxLabelBytes bounds the labels of a job's targets: each target has those of its group, which can be large.
const maxLabelBytes = 64 << 20

// labelBytes returns the memory of labels, of which the public ones are kept for each kind of profile, too.
func (c *Config) labelBytes(set model.LabelSet) (size int) {
	for name, value := range set {
		copies := 1
		if !strings.HasPrefix(string(name), model.ReservedLabelPrefix) {
			copies += 1 + len(c.Profiles)
		}
		size += copies * (len(name) + len(value))
	}
	return size
}

// groupKey identifies a target within a job.
type groupKey struct {
	scheme   string
	address  address
	interval time.Duration
	public   string // the labels' bytes
}

// grouping collects the endpoints of a job's targets.
type grouping struct {
	cfg     *Config
	report  JobReport
	added   int
	members map[groupKey]*member
	order   []groupKey
	memo    *memo
	lb      *labels.Builder
	bytes   []byte
}

// member is a Target in the making.
type member struct {
	id         identified
	discovered labels.Labels
	endpoints  []Endpoint
	// exact means that discovery found the target at the address that is scraped. Rules that set the port from an
	// annotation turn every container of a pod into the same address; at most one of them was found there.
	exact bool
}

// group returns the targets of a job for what discovery found.
func (c *Config) group(groups []*targetgroup.Group, m *memo) ([]*Target, JobReport) {
	g := grouping{
		memo:    m,
		cfg:     c,
		report:  JobReport{Job: c.JobName},
		members: map[groupKey]*member{},
		lb:      labels.NewBuilder(labels.EmptyLabels()),
	}
	// Discovery keeps its groups in a map. A fixed order makes the same one of two duplicates win each time.
	groups = slices.Clone(groups)
	slices.SortStableFunc(groups, func(a, b *targetgroup.Group) int { return cmp.Compare(a.Source, b.Source) })
	bytes := 0
	for _, group := range groups {
		shared := c.labelBytes(group.Labels)
		for _, target := range group.Targets {
			size := shared + c.labelBytes(target)
			if g.added >= c.TargetLimit || bytes+size > maxLabelBytes {
				g.report.Discovered++
				g.report.Dropped[DropLimit]++
				continue
			}
			bytes += size
			g.add(c.discover(g.lb, target, group.Labels))
		}
	}
	m.forgetUnused()
	targets := make([]*Target, 0, len(g.order))
	for _, key := range g.order {
		targets = append(targets, g.target(key))
	}
	slices.SortStableFunc(targets, func(a, b *Target) int {
		return cmp.Or(cmp.Compare(a.Endpoints[0].URL.Host, b.Endpoints[0].URL.Host), labels.Compare(a.Labels, b.Labels),
			cmp.Compare(a.Key, b.Key))
	})
	return targets, g.report
}

func (g *grouping) add(found labels.Labels) {
	g.report.Discovered++
	g.added++
	r := g.relabelled(found)
	for _, k := range r.kinds {
		if k.err != nil {
			g.drop(Dropped{Discovered: r.labels, Profile: k.profile, Reason: DropInvalid, Detail: k.err.Error()})
		} else {
			g.join(r.labels, k.scrapeable)
		}
	}
	if len(r.kinds) == 0 {
		g.drop(Dropped{Discovered: r.labels, Reason: DropRelabelled})
	}
}

func (g *grouping) drop(d Dropped) {
	g.report.Dropped[d.Reason]++
	if len(g.report.Examples) < maxExamples {
		g.report.Examples = append(g.report.Examples, d)
	}
}

// join adds an endpoint to the target that it belongs to.
func (g *grouping) join(from labels.Labels, s *scrapeable) {
	g.bytes = s.public.Bytes(g.bytes)
	key := groupKey{scheme: s.scheme, address: s.address, interval: s.interval, public: string(g.bytes)}
	exact := isExact(from, s.address)
	m, found := g.members[key]
	if !found {
		m = &member{
			id:         identified{scrapeable: s, meta: from, job: cmp.Or(s.public.Get(model.JobLabel), g.cfg.JobName)},
			discovered: from,
			exact:      exact,
		}
		g.members[key] = m
		g.order = append(g.order, key)
	}
	m.merge(from, exact)
	for _, e := range m.endpoints {
		if e.Profile.Name == s.endpoint.Profile.Name || *e.URL == *s.endpoint.URL {
			g.drop(Dropped{
				Discovered: from, Profile: s.endpoint.Profile.Name, Reason: DropDuplicate,
				Detail: "scraped already: " + e.Profile.Name + " at " + e.URL.Host + e.URL.Path + " with the same labels",
			})
			return
		}
	}
	m.endpoints = append(m.endpoints, s.endpoint)
}

// isExact reports whether a target was discovered at an address.
func isExact(from labels.Labels, at address) bool {
	found, err := parseAddress(from.Get(model.AddressLabel))
	return err == nil && found == at
}

// merge settles the identity if several discovered targets turn out to be one. The one that was found at the address
// itself describes best what listens there. If there is none, only the labels that all agree on count.
func (m *member) merge(from labels.Labels, exact bool) {
	switch {
	case labels.Equal(m.discovered, from) || m.exact:
	case exact:
		m.id.meta, m.discovered, m.exact = from, from, true
	default:
		common := labels.NewBuilder(m.id.meta)
		m.id.meta.Range(func(l labels.Label) {
			if from.Get(l.Name) != l.Value {
				common.Del(l.Name)
			}
		})
		m.id.meta = common.Labels()
	}
}

func (g *grouping) target(key groupKey) *Target {
	m := g.members[key]
	// Endpoints of several discovered targets may be in another order.
	slices.SortStableFunc(m.endpoints, func(a, b Endpoint) int {
		return cmp.Compare(g.cfg.position(a.Profile), g.cfg.position(b.Profile))
	})
	hash := sha256.New()
	for _, part := range []string{g.cfg.JobName, key.scheme, key.address.host, strconv.Itoa(key.address.port),
		key.interval.String(), key.public} {
		hash.Write([]byte(strconv.Itoa(len(part)) + ":" + part))
	}
	return &Target{
		Key:        hex.EncodeToString(hash.Sum(nil)[:16]),
		Job:        g.cfg.JobName,
		Labels:     m.id.public,
		Discovered: m.discovered,
		Resource:   m.id.resource(),
		Interval:   m.id.interval,
		Endpoints:  m.endpoints,
	}
}

func (c *Config) position(p ProfileConfig) int {
	return slices.IndexFunc(c.Profiles, func(other ProfileConfig) bool { return other.Name == p.Name })
}

// memo keeps the results of one job's rules for each discovered target. Discovery sends all targets when one changes,
// and in a cluster something changes all the time.
type memo struct {
	// The keys are the SHA-256 of the labels, so that equal keys need no comparison.
	last, next map[[sha256.Size]byte]*relabelled
}

// relabelled is a discovered target after relabelling.
type relabelled struct {
	labels labels.Labels
	// kinds are the kinds of profiles that the rules keep.
	kinds []relabelledKind
}

// relabelledKind has either an endpoint or an error.
type relabelledKind struct {
	profile string
	*scrapeable
	err error
}

func newMemo() *memo { return &memo{next: map[[sha256.Size]byte]*relabelled{}} }

// relabelled runs the rules for a discovered target, once for each kind of profile, or returns the result of the last
// time.
func (g *grouping) relabelled(found labels.Labels) *relabelled {
	g.bytes = found.Bytes(g.bytes)
	hash := sha256.Sum256(g.bytes)
	known := g.memo.next[hash]
	if known == nil {
		known = g.memo.last[hash]
	}
	if known == nil {
		known = &relabelled{labels: found}
		for _, p := range g.cfg.Profiles {
			if !p.Enabled {
				continue
			}
			if s, err := g.cfg.relabel(g.lb, found, p); err != nil || s != nil {
				known.kinds = append(known.kinds, relabelledKind{profile: p.Name, scrapeable: s, err: err})
			}
		}
	}
	g.memo.next[hash] = known
	return known
}

// forgetUnused drops the results that were not used since its last call.
func (m *memo) forgetUnused() {
	m.last, m.next = m.next, make(map[[sha256.Size]byte]*relabelled, len(m.next))
}
