// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package targets

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/relabel"

	"github.com/otelcol-profiles/otelcol-profiles/internal/service/redact"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver/internal/fetch"
)

// The labels for profiles, besides those of Prometheus.
const (
	labelProfileName       = "__profile_name__"
	labelProfilePath       = "__profile_path__"
	labelProfilePathPrefix = "__profile_path_prefix__"
)

// scrapeable is one kind of one target after relabelling.
type scrapeable struct {
	scheme   string
	address  address
	interval time.Duration
	public   labels.Labels
	endpoint Endpoint
	// instance means that the label `instance` was not derived from the address.
	instance bool
}

// discover returns the labels of a target before relabelling: those of discovery, and defaults for what discovery has
// not set.
func (c *Config) discover(lb *labels.Builder, target, group model.LabelSet) labels.Labels {
	lb.Reset(labels.EmptyLabels())
	for name, value := range group {
		lb.Set(string(name), string(value))
	}
	for name, value := range target {
		lb.Set(string(name), string(value))
	}
	setDefault := func(name, value string) {
		if lb.Get(name) == "" {
			lb.Set(name, value)
		}
	}
	setDefault(model.JobLabel, c.JobName)
	setDefault(model.ScrapeIntervalLabel, model.Duration(c.ScrapeInterval).String())
	setDefault(model.ScrapeTimeoutLabel, model.Duration(c.ScrapeTimeout).String())
	setDefault(model.SchemeLabel, c.Scheme)
	setDefault(labelProfilePathPrefix, c.PathPrefix)
	for name, values := range c.Params {
		if len(values) > 0 {
			setDefault(model.ParamLabelPrefix+name, values[0])
		}
	}
	return lb.Labels()
}

// relabel runs the rules for one kind. It returns nil without an error if they drop it.
func (c *Config) relabel(lb *labels.Builder, from labels.Labels, p ProfileConfig) (*scrapeable, error) {
	lb.Reset(from)
	lb.Set(labelProfileName, p.Name)
	if lb.Get(labelProfilePath) == "" {
		lb.Set(labelProfilePath, p.Path)
	}
	for name, values := range p.Params {
		if len(values) > 0 {
			lb.Set(model.ParamLabelPrefix+name, values[0])
		}
	}
	if !relabel.ProcessBuilder(lb, c.RelabelConfigs...) {
		return nil, nil
	}
	return c.endpoint(lb, p)
}

// endpoint reads the labels after relabelling.
func (c *Config) endpoint(lb *labels.Builder, p ProfileConfig) (*scrapeable, error) {
	var s scrapeable
	var err error
	if s.address, err = parseAddress(lb.Get(model.AddressLabel)); err != nil {
		return nil, fmt.Errorf("`%s`: %w", model.AddressLabel, err)
	}
	if s.scheme = lb.Get(model.SchemeLabel); s.scheme != "http" && s.scheme != "https" {
		return nil, fmt.Errorf("`%s` must be http or https, found %q", model.SchemeLabel, s.scheme)
	}
	if s.interval, err = positive(lb, model.ScrapeIntervalLabel); err != nil {
		return nil, err
	}
	timeout, err := positive(lb, model.ScrapeTimeoutLabel)
	if err != nil {
		return nil, err
	}
	path, err := joinPath(lb.Get(labelProfilePathPrefix), lb.Get(labelProfilePath))
	if err != nil {
		return nil, err
	}
	query := c.query(lb, p)
	seconds, err := recordedSeconds(lb, p, s.interval)
	if err != nil {
		return nil, err
	}
	recording := time.Duration(seconds) * time.Second
	if recording > 0 {
		query.Set("seconds", strconv.Itoa(seconds))
		timeout = max(timeout, recording+fetch.TransferTime)
	} else {
		query.Del("seconds")
	}
	s.endpoint = Endpoint{
		Profile:   p,
		URL:       &url.URL{Scheme: s.scheme, Host: s.address.urlHost(), Path: path, RawQuery: query.Encode()},
		Recording: recording,
		Timeout:   timeout,
	}
	s.instance = lb.Get(model.InstanceLabel) != ""
	s.public, err = publicLabels(lb)
	return &s, err
}

// query returns the configured query, whose first values follow from the labels.
func (c *Config) query(lb *labels.Builder, p ProfileConfig) url.Values {
	query := url.Values{}
	for _, params := range []url.Values{c.Params, p.Params} {
		for name, values := range params {
			query[name] = slices.Clone(values)
		}
	}
	lb.Range(func(l labels.Label) {
		name, isParam := strings.CutPrefix(l.Name, model.ParamLabelPrefix)
		switch {
		case !isParam:
		case len(query[name]) > 0:
			query[name][0] = l.Value
		default:
			query[name] = []string{l.Value}
		}
	})
	return query
}

// recordedSeconds returns for how long the target is asked to record: `__param_seconds` if a rule or the discovery has
// set it, otherwise as configured. It is 0 for kinds that do not record, regardless of the label.
func recordedSeconds(lb *labels.Builder, p ProfileConfig, interval time.Duration) (int, error) {
	if p.Seconds == 0 {
		return 0, nil
	}
	if p.fitted {
		p.Seconds = fitSeconds(interval)
	}
	const label = model.ParamLabelPrefix + "seconds"
	if value := lb.Get(label); value != "" {
		seconds, err := strconv.Atoi(value)
		if err != nil || seconds <= 0 {
			return 0, fmt.Errorf("`%s` must be a positive number of seconds, found %q", label, value)
		}
		p.Seconds = seconds
	}
	if err := checkSeconds(p, interval); err != nil {
		return 0, fmt.Errorf("seconds %w", err)
	}
	return p.Seconds, nil
}

func positive(lb *labels.Builder, label string) (time.Duration, error) {
	d, err := model.ParseDuration(lb.Get(label))
	if err != nil {
		return 0, fmt.Errorf("`%s`: %w", label, err)
	}
	if d <= 0 {
		return 0, fmt.Errorf("`%s` must be positive, found %v", label, d)
	}
	return time.Duration(d), nil
}

func joinPath(prefix, path string) (string, error) {
	if strings.ContainsAny(prefix+path, "?#") {
		return "", fmt.Errorf("`%s` and `%s` must have no query (see `__param_<name>`), found %q and %q",
			labelProfilePathPrefix, labelProfilePath, prefix, path)
	}
	joined := strings.TrimSuffix(prefix, "/") + "/" + strings.TrimPrefix(path, "/")
	return "/" + strings.TrimPrefix(joined, "/"), nil
}

// publicLabels returns the labels whose names do not begin with `__`, and sets `instance`.
func publicLabels(lb *labels.Builder) (labels.Labels, error) {
	if lb.Get(model.InstanceLabel) == "" {
		lb.Set(model.InstanceLabel, lb.Get(model.AddressLabel))
	}
	lb.Range(func(l labels.Label) {
		if strings.HasPrefix(l.Name, model.ReservedLabelPrefix) {
			lb.Del(l.Name)
		}
	})
	public := lb.Labels()
	err := public.Validate(func(l labels.Label) error {
		if !model.LabelValue(l.Value).IsValid() || !model.UTF8Validation.IsValidLabelName(l.Name) {
			return fmt.Errorf("label %q must be UTF-8, found %q", l.Name, l.Value)
		}
		return nil
	})
	return public, err
}

type address struct {
	host string // IPv6 addresses have no brackets
	port int    // 0 means the scheme's
}

// parseAddress reads `host`, `host:port`, `[v6]`, `[v6]:port` and, as Kubernetes' discovery writes it, a bare `v6`.
func parseAddress(s string) (address, error) {
	if s == "" {
		return address{}, errors.New("the address is empty")
	}
	if strings.Contains(s, "/") {
		return address{},
			fmt.Errorf("found %q: write host:port, the scheme in `scheme`, and the path in `profiles` or `path_prefix`",
				shown(s))
	}
	if strings.Contains(s, "@") {
		return address{}, fmt.Errorf("found %q: a user and password belong in `basic_auth`", shown(s))
	}
	if ip, isIP := parseIP(s); isIP {
		return address{host: ip.String()}, nil
	}
	if _, err := strconv.ParseUint(s, 10, 16); err == nil {
		return address{}, fmt.Errorf("found %q, which is a port without a host: write host:port, such as localhost:%s", s, s)
	}
	a := address{host: s}
	if strings.Contains(s, ":") && !strings.HasSuffix(s, "]") {
		host, port, err := net.SplitHostPort(s)
		if err != nil {
			return address{}, fmt.Errorf("found %q: write host:port", s)
		}
		number, err := strconv.ParseUint(port, 10, 16)
		if err != nil || number == 0 {
			return address{}, fmt.Errorf("found %q: the port must be a number from 1 to 65535", s)
		}
		a = address{host: host, port: int(number)}
	}
	if strings.HasPrefix(s, "[") {
		ip, isIP := parseIP(strings.TrimSuffix(strings.TrimPrefix(a.host, "["), "]"))
		if !isIP || !ip.Is6() {
			return address{}, fmt.Errorf("found %q: brackets must hold an IPv6 address", s)
		}
		a.host = ip.String()
		return a, nil
	}
	if a.host == "" || !isHost(a.host) {
		return address{}, fmt.Errorf("found %q: write host:port", s)
	}
	return a, nil
}

// shown returns an address without its user, password and query, so that errors can quote it.
func shown(address string) string {
	address, _, _ = strings.Cut(address, "?")
	if strings.Contains(address, "://") {
		return redact.RawURL(address)
	}
	return strings.TrimPrefix(redact.RawURL("//"+address), "//")
}

func parseIP(s string) (netip.Addr, bool) {
	ip, err := netip.ParseAddr(s)
	zone := ip.Zone()
	isASCII := !strings.ContainsFunc(zone, func(r rune) bool { return r > 0x7f }) // url.Parse refuses others in a zone
	return ip, err == nil && isASCII && isHost(zone)
}

// isHost is lenient: names of containers have underscores, and the resolver decides about letters beyond ASCII.
func isHost(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool {
		return r <= 0x7f && r != '-' && r != '.' && r != '_' && (r < '0' || r > '9') && (r < 'a' || r > 'z') &&
			(r < 'A' || r > 'Z')
	})
}

// urlHost returns the address as in a URL.
func (a address) urlHost() string {
	if a.port != 0 {
		return net.JoinHostPort(a.host, strconv.Itoa(a.port))
	}
	if strings.Contains(a.host, ":") {
		return "[" + a.host + "]"
	}
	return a.host
}
