// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pprofreceiver

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.uber.org/zap"
)

// transferTime is the least that a timeout leaves for the answer after the target has recorded.
const transferTime = 5 * time.Second

// remote scrapes one URL.
type remote struct {
	cfg    *RemoteConfig
	set    component.TelemetrySettings
	ingest *ingester
	worker worker

	target *url.URL
	shown  string // the target without credentials
	id     identity
	client *http.Client
	log    changeLog
}

func newRemote(cfg *RemoteConfig, set component.TelemetrySettings, in *ingester) *remote {
	return &remote{cfg: cfg, set: set, ingest: in}
}

func (*remote) name() string { return sourceRemote }

// Start begins to scrape after the initial delay.
func (r *remote) Start(ctx context.Context, host component.Host) error {
	var err error
	if r.target, err = url.Parse(r.cfg.Client.Endpoint); err != nil {
		return errors.New("`endpoint` must be a URL")
	}
	r.shown = redactURL(r.target)
	r.id = newIdentity()
	r.id.derived.PutStr(attributeServerAddress, r.target.Hostname())
	r.id.derived.PutInt(attributeServerPort, int64(effectivePort(r.target)))
	r.id.derived.PutStr(attributeURLFull, r.shown)
	r.log = changeLog{logger: r.set.Logger.With(zap.String("url", r.shown))}

	config := r.cfg.Client
	config.Timeout = r.timeout()
	if r.client, err = config.ToClient(ctx, host.GetExtensions(), r.set); err != nil {
		return err
	}
	r.client.CheckRedirect = sameHostOnly
	r.worker.start(func(stopping, deliver context.Context) {
		every(stopping, r.cfg.InitialDelay, r.cfg.CollectionInterval, func() { r.scrape(stopping, deliver) })
	})
	return nil
}

// Shutdown breaks off a request under way; what was already fetched is delivered.
func (r *remote) Shutdown(ctx context.Context) error {
	err := r.worker.shutdown(ctx)
	r.client.CloseIdleConnections()
	return err
}

// timeout is the configured one, raised above the time for which the target records.
func (r *remote) timeout() time.Duration {
	configured := r.cfg.Client.Timeout
	if configured <= 0 {
		return 0
	}
	return max(configured, recordingTime(r.target)+transferTime)
}

// sameHostOnly keeps the configured headers, which may hold credentials, from going elsewhere.
func sameHostOnly(next *http.Request, via []*http.Request) error {
	first := via[0].URL
	if next.URL.Host != first.Host || next.URL.Scheme != first.Scheme {
		return errors.New("the target redirects to another host")
	}
	if len(via) >= 10 {
		return errors.New("the target redirects in a circle")
	}
	return nil
}

func (r *remote) scrape(stopping, deliver context.Context) {
	data, err := r.fetch(stopping)
	if err == nil {
		err = r.ingest.ingest(deliver, payload{data: data, identity: r.id}, 0)
	} else if stopping.Err() != nil {
		return // broken off by the shutdown, which is no fault
	}
	r.log.note(stateOf(err), err)
}

// statusError is an answer's status other than 200.
type statusError int

func (s statusError) Error() string {
	return fmt.Sprintf("status %d %s", int(s), http.StatusText(int(s)))
}

// stateOf names what is wrong, as coarsely as the metrics do, so that a changing detail does not
// make a new state. Another status is more than a detail.
func stateOf(err error) string {
	var rejected *rejection
	if !errors.As(err, &rejected) {
		return "refused"
	}
	var status statusError
	if errors.As(err, &status) {
		return fmt.Sprintf("%s %d", rejected.reason, int(status))
	}
	return string(rejected.reason)
}

// fetch gets one payload. Its error is a *rejection, and counted unless the shutdown caused it.
func (r *remote) fetch(ctx context.Context) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, r.target.String(), http.NoBody)
	if err != nil {
		return nil, err
	}
	response, err := r.client.Do(request)
	if err != nil {
		// The client's error repeats the URL; only what is inside it is of interest.
		var wrapped *url.Error
		if errors.As(err, &wrapped) {
			err = wrapped.Err
		}
		return nil, r.failed(ctx, reasonUnreachable, fmt.Errorf("get %s: %w", r.shown, err))
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return nil, r.failed(ctx, reasonStatus, fmt.Errorf("get %s: %w%s", r.shown, statusError(response.StatusCode), firstLine(response.Body)))
	}
	if kind := response.Header.Get("Content-Type"); !mayBePprof(kind) {
		return nil, r.failed(ctx, reasonContentType, fmt.Errorf(
			"get %s: the answer is %s, not a pprof (does the query have debug=?)%s", r.shown, kind, firstLine(response.Body)))
	}
	limit := int64(r.ingest.cfg.Limits.MaxProfileBytes)
	var body bytes.Buffer
	n, err := body.ReadFrom(io.LimitReader(response.Body, limit+1))
	if err != nil {
		return nil, r.failed(ctx, reasonUnreachable, fmt.Errorf("get %s: after %d bytes: %w", r.shown, n, err))
	}
	if n > limit {
		return nil, r.failed(ctx, reasonTooLarge, fmt.Errorf("get %s: the answer is larger than %d bytes (`max_profile_bytes`)", r.shown, limit))
	}
	return body.Bytes(), nil
}

func (r *remote) failed(ctx context.Context, why reason, err error) error {
	if ctx.Err() != nil {
		return reject(why, err)
	}
	return r.ingest.rejected(ctx, why, err)
}

// mayBePprof refuses what says of itself that it is text. Anything else is left to the decoder:
// pprof has no content type of its own, and servers give it many.
func mayBePprof(contentType string) bool {
	kind, _, err := mime.ParseMediaType(contentType)
	if err != nil {
		return true
	}
	switch {
	case strings.HasPrefix(kind, "text/"), kind == "application/json", strings.HasSuffix(kind, "xml"):
		return false
	}
	return true
}

// firstLine quotes the beginning of a text answer, which tends to say what is wrong.
func firstLine(body io.Reader) string {
	start, _ := io.ReadAll(io.LimitReader(body, 200))
	line, _, _ := strings.Cut(strings.TrimSpace(string(start)), "\n")
	if line == "" {
		return ""
	}
	return fmt.Sprintf(": it begins with %q", line)
}
