// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package targets

import (
	"net/url"
	"slices"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"go.opentelemetry.io/collector/pdata/pcommon"
)

// Target is one process to scrape, after relabelling. It is immutable.
type Target struct {
	// Key identifies the target across updates: a hash of its job, scheme, address, interval and public labels. It does
	// not depend on the endpoints. No two targets of an update have the same.
	Key string
	// Job is the `job_name` of the configuration that found the target. Relabelling may have changed the label `job`.
	Job string
	// Labels are the public labels: those without a leading `__`.
	Labels labels.Labels
	// Discovered are the labels before relabelling, for the status page. Query parameters among them (`__param_…`) may
	// be secret.
	Discovered labels.Labels
	// Resource is the target's identity. It is read only.
	Resource pcommon.Map
	// Interval is the time from the start of one scrape of an endpoint to the start of the next.
	Interval time.Duration
	// Endpoints holds one entry for each kind of profile, in the order of Config.Profiles. It is not empty, and no
	// two have the same kind.
	Endpoints []Endpoint
}

// Endpoint is one kind of profile of a target.
type Endpoint struct {
	// Profile is the kind. Its path, seconds and parameters are those of the configuration; URL has the final ones.
	Profile ProfileConfig
	// URL is the URL to request, with `seconds`. It is read only and may hold secrets in its query.
	URL *url.URL
	// Recording is the time for which the target records before it answers; 0 if it answers at once.
	Recording time.Duration
	// Timeout bounds one scrape. It is always longer than Recording.
	Timeout time.Duration
}

// Equal compares targets with equal keys.
func (t *Target) Equal(other *Target) bool {
	return t.Job == other.Job && labels.Equal(t.Discovered, other.Discovered) && t.Resource.Equal(other.Resource) &&
		slices.EqualFunc(t.Endpoints, other.Endpoints, func(a, b Endpoint) bool {
			return a.Profile.Name == b.Profile.Name && *a.URL == *b.URL && a.Recording == b.Recording && a.Timeout == b.Timeout
		})
}

// Update is the whole set of targets, without duplicates.
type Update struct {
	// Targets are ordered by job as configured, then by address and labels.
	Targets []*Target
	// Jobs has one entry for each configuration, in their order.
	Jobs []JobReport
}

// JobReport counts a job's discovered and dropped targets.
type JobReport struct {
	// Job is the `job_name`.
	Job string
	// Discovered counts the targets before relabelling.
	Discovered int
	// Dropped counts those that are not scraped, by reason: targets of which the rules dropped all kinds, and single kinds
	// that are invalid or duplicates.
	Dropped [NumDropReasons]int
	// Examples holds the first 100 dropped targets.
	Examples []Dropped
}

// Dropped is a discovered target that is not scraped.
type Dropped struct {
	// Discovered are its labels before relabelling.
	Discovered labels.Labels
	// Profile is the kind in question; empty means all of them.
	Profile string
	// Reason is why it is not scraped.
	Reason DropReason
	// Detail explains an invalid one or a duplicate.
	Detail string
}

// DropReason is why a discovered target is not scraped.
type DropReason int

// The reasons.
const (
	// DropRelabelled means that the rules dropped every kind.
	DropRelabelled DropReason = iota
	// DropInvalid means that the labels after relabelling do not make an endpoint.
	DropInvalid
	// DropDuplicate means that the same URL with the same public labels is scraped already.
	DropDuplicate
	// DropLimit means that the job has `target_limit` targets without it, or too many bytes of labels.
	DropLimit
	// NumDropReasons is the number of reasons.
	NumDropReasons
)

// String returns the reason as metrics and the status page show it.
func (r DropReason) String() string {
	return [NumDropReasons]string{"relabelled", "invalid", "duplicate", "limit"}[r]
}
