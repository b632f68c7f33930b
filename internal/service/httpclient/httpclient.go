// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package httpclient is for what sends by HTTP. Client.Post makes one exchange. Its Answer is an error that describes a
// refusal.
package httpclient

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"runtime"
	"strings"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/config/confighttp"
	"go.opentelemetry.io/collector/consumer/consumererror"
	spb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/otelcol-profiles/otelcol-profiles/internal/service/httpserver"
	"github.com/otelcol-profiles/otelcol-profiles/internal/service/redact"
)

// MaxAnswerBytes bounds how much of an answer is read, MaxMessageBytes how much of it an error contains.
const (
	MaxAnswerBytes  = 64 << 10
	MaxMessageBytes = 1 << 10
)

// Client sends requests. Its fields do not change after Start.
type Client struct {
	Config    confighttp.ClientConfig
	Telemetry component.TelemetrySettings
	UserAgent string
	// MaxRetryAfter bounds the delay that a server may ask for.
	MaxRetryAfter time.Duration
	// HTTP is made by Start.
	HTTP *http.Client
}

// UserAgent returns the name of this collector for requests.
func UserAgent(info component.BuildInfo) string {
	return fmt.Sprintf("%s/%s (%s/%s)", info.Command, info.Version, runtime.GOOS, runtime.GOARCH)
}

// Start makes the client. It does not connect.
func (c *Client) Start(ctx context.Context, host component.Host) (err error) {
	if c.HTTP, err = c.Config.ToClient(ctx, host.GetExtensions(), c.Telemetry); err == nil {
		c.HTTP.CheckRedirect = httpserver.KeepMethod
	}
	return err
}

// Shutdown closes idle connections.
func (c *Client) Shutdown() {
	if c.HTTP != nil {
		c.HTTP.CloseIdleConnections()
	}
}

// Post sends a body, and returns the server's answer. Without an answer it returns an error, which is permanent if the
// request could not be made, or is redirected to where it must not go. Neither contains credentials of the URL.
func (c *Client) Post(ctx context.Context, url string, header http.Header, body []byte) (*Answer, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return nil, consumererror.NewPermanent(redact.Error(err))
	}
	maps.Copy(request.Header, header)
	request.Header.Set("User-Agent", c.UserAgent)
	response, err := c.HTTP.Do(request)
	if _, ok := errors.AsType[httpserver.RedirectError](err); ok {
		return nil, consumererror.NewPermanent(redact.Error(err))
	} else if err != nil {
		return nil, redact.Error(err)
	}
	defer response.Body.Close()
	content, err := io.ReadAll(io.LimitReader(response.Body, MaxAnswerBytes))
	if err != nil {
		content = nil // the status suffices
	}
	a := &Answer{
		URL: redact.RawURL(url), Status: response.StatusCode, Body: content,
		Message:    Shorten(string(bytes.TrimSpace(content))),
		IsProtobuf: strings.HasPrefix(response.Header.Get("Content-Type"), httpserver.ContentProtobuf),
		IsPage:     strings.HasPrefix(response.Header.Get("Content-Type"), "text/html"),
		RetryAfter: min(httpserver.RetryAfter(response.Header, time.Now()), c.MaxRetryAfter),
	}
	var refusal spb.Status // of OTLP
	if a.IsProtobuf && !a.IsAccepted() && proto.Unmarshal(content, &refusal) == nil {
		a.Message = Shorten(refusal.GetMessage())
	}
	return a, nil
}

// Answer is a server's answer. If it is a refusal, it is an error.
type Answer struct {
	// URL is without credentials.
	URL        string
	Status     int
	IsProtobuf bool
	// IsPage means that it is for a browser, such as a login.
	IsPage bool
	// Body is its beginning.
	Body []byte
	// Message is that of OTLP's status, or else the beginning of the body.
	Message string
	// RetryAfter is the delay that the server asks for, at most the client's MaxRetryAfter.
	RetryAfter time.Duration
}

// IsAccepted reports whether the server has the data.
func (a *Answer) IsAccepted() bool { return a.Status/100 == 2 && !a.IsPage }

func (a *Answer) Error() string {
	if a.IsPage && a.Status/100 == 2 {
		return fmt.Sprintf("%s answered with a web page, which is not from a server that receives profiles: %q", a.URL,
			a.Message)
	}
	return fmt.Sprintf("%s answered %d %s: %q", a.URL, a.Status, http.StatusText(a.Status), a.Message)
}

// Shorten returns the beginning of a server's message, in valid UTF-8.
func Shorten(message string) string {
	return strings.ToValidUTF8(message[:min(len(message), MaxMessageBytes)], "\uFFFD")
}
