// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package targets

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"mime"
	nethttp "net/http"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/prometheus/common/config"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/discovery/http"
	"github.com/prometheus/prometheus/discovery/targetgroup"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/wire"
	"github.com/otelcol-profiles/otelcol-profiles/internal/service/httpserver"
	"github.com/otelcol-profiles/otelcol-profiles/internal/service/redact"
	"github.com/otelcol-profiles/otelcol-profiles/internal/service/worker"
)

// maxHTTPBytes is the largest list that a server may answer with: half a million targets.
const maxHTTPBytes = 32 << 20

// httpDiscovery does what Prometheus' discovery by HTTP does, within bounds: Prometheus reads a list of any size into
// memory. It keeps the first targets, and counts the others.
type httpDiscovery struct {
	cfg    *http.SDConfig
	client *nethttp.Client
	logger *slog.Logger
	limit  int
	// beyond counts the targets of the last list that were left out.
	beyond atomic.Int64
	groups int // of the last list
}

func newHTTPDiscovery(cfg *http.SDConfig, limit int, logger *slog.Logger) (*httpDiscovery, error) {
	client, err := config.NewClientFromConfig(cfg.HTTPClientConfig, "http")
	if err != nil {
		return nil, err
	}
	client.Timeout = time.Duration(cfg.RefreshInterval)
	if cfg.HTTPClientConfig.FollowRedirects { // otherwise Prometheus' client returns the redirect
		client.CheckRedirect = httpserver.SameOriginOnly
	}
	return &httpDiscovery{cfg: cfg, client: client, logger: logger, limit: limit}, nil
}

// Run sends the groups at each interval until ctx ends.
func (d *httpDiscovery) Run(ctx context.Context, found chan<- []*targetgroup.Group) {
	defer d.client.CloseIdleConnections()
	worker.Every(ctx, 0, time.Duration(d.cfg.RefreshInterval), func() {
		groups, err := d.refresh(ctx)
		if err == nil {
			send(ctx, found, groups)
		} else if ctx.Err() == nil {
			d.logger.Error("Unable to refresh target groups", "err", redact.Error(err).Error())
		}
	})
}

// refresh returns the groups of the server's list, and an empty group for each that is no longer there.
func (d *httpDiscovery) refresh(ctx context.Context) ([]*targetgroup.Group, error) {
	request, err := nethttp.NewRequestWithContext(ctx, nethttp.MethodGet, d.cfg.URL, nethttp.NoBody)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Accept", "application/json")
	request.Header.Set("X-Prometheus-Refresh-Interval-Seconds",
		strconv.FormatFloat(time.Duration(d.cfg.RefreshInterval).Seconds(), 'f', -1, 64))
	response, err := d.client.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != nethttp.StatusOK {
		return nil, fmt.Errorf("server returned HTTP status %s", response.Status)
	}
	if kind, _, err := mime.ParseMediaType(response.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return nil, fmt.Errorf("unsupported content type %q", response.Header.Get("Content-Type"))
	}
	list := newGroupReader(&io.LimitedReader{R: response.Body, N: maxHTTPBytes + 1}, d.limit)
	if err := list.read(); list.json.InputOffset() > maxHTTPBytes || errors.Is(err, io.ErrUnexpectedEOF) &&
		list.body.N == 0 {
		return nil, fmt.Errorf("the list is larger than %d bytes", maxHTTPBytes)
	} else if err != nil {
		return nil, fmt.Errorf("read the list of targets: %w", err)
	}
	d.beyond.Store(int64(list.beyond))
	for i, g := range list.groups {
		g.Source = d.source(i)
		g.Labels[model.MetaLabelPrefix+"url"] = model.LabelValue(d.cfg.URL)
	}
	groups := list.groups
	for i := len(list.groups); i < d.groups; i++ {
		groups = append(groups, &targetgroup.Group{Source: d.source(i)})
	}
	d.groups = len(list.groups)
	return groups, nil
}

func (d *httpDiscovery) source(i int) string { return fmt.Sprintf("%s:%06d", d.cfg.URL, i) }

// groupReader reads a JSON list of groups.
type groupReader struct {
	body   *io.LimitedReader
	json   wire.JSON
	groups []*targetgroup.Group
	// targets and labelBytes are what may still be kept.
	targets, labelBytes int
	beyond              int
}

// labelOverhead is the memory of a label besides its string.
const labelOverhead = 64

func newGroupReader(body *io.LimitedReader, limit int) *groupReader {
	return &groupReader{body: body, json: wire.JSON{Decoder: json.NewDecoder(body)}, targets: limit,
		labelBytes: maxLabelBytes}
}

func (r *groupReader) read() error {
	if err := r.json.Array(r.readGroup); err != nil {
		return err
	}
	if _, err := r.json.Token(); !errors.Is(err, io.EOF) {
		return errors.New("there is data after the list")
	}
	return nil
}

func (r *groupReader) string() (s string, err error) {
	if err = r.json.Decode(&s); err != nil {
		err = fmt.Errorf("a value must be a string: %w", err)
	}
	return s, err
}

// readGroup keeps a group with the targets for which there is room. Keys that are not known are skipped, as by
// Prometheus.
func (r *groupReader) readGroup() error {
	g := &targetgroup.Group{Labels: model.LabelSet{}}
	isTooLarge := false
	err := r.json.Object(func(key string) error {
		var err error
		switch key {
		case "targets":
			err = r.json.Array(func() error { return r.readTarget(g) })
		case "labels":
			isTooLarge, err = r.readLabels(g)
		default:
			err = r.json.Skip()
		}
		if errors.Is(err, wire.ErrNull) { // there are none
			return nil
		}
		return err
	})
	if isTooLarge {
		r.beyond += len(g.Targets)
		r.targets += len(g.Targets)
		g.Targets = nil
	}
	if len(g.Targets) > 0 {
		r.groups = append(r.groups, g)
	}
	return err
}

func (r *groupReader) readTarget(g *targetgroup.Group) error {
	address, err := r.string()
	cost := len(address) + labelOverhead
	switch {
	case err != nil:
		return err
	case r.targets == 0 || r.labelBytes < cost:
		r.beyond++
		return nil
	}
	r.targets--
	r.labelBytes -= cost
	g.Targets = append(g.Targets, model.LabelSet{model.AddressLabel: model.LabelValue(address)})
	return nil
}

// readLabels reports whether there is no room for the labels.
func (r *groupReader) readLabels(g *targetgroup.Group) (isTooLarge bool, err error) {
	err = r.json.Object(func(name string) error {
		value, err := r.string()
		if err != nil {
			return err
		}
		if !model.UTF8Validation.IsValidLabelName(name) {
			return fmt.Errorf("%q is not a valid label name", name)
		}
		cost := len(name) + len(value) + labelOverhead
		if isTooLarge = isTooLarge || r.targets == 0 && len(g.Targets) == 0 || r.labelBytes < cost; !isTooLarge {
			r.labelBytes -= cost
			g.Labels[model.LabelName(name)] = model.LabelValue(value)
		}
		return nil
	})
	return isTooLarge, err
}
