// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.opentelemetry.io/collector/pdata/pprofile/pprofileotlp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	_ "google.golang.org/grpc/encoding/gzip" // for --compression gzip
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/otelcol-profiles/otelcol-profiles/internal/pprof/encode"
)

// The protocols.
const (
	protocolGRPC  = "otlp_grpc"
	protocolHTTP  = "otlp_http"
	protocolPprof = "pprof"
)

var protocols = []string{protocolGRPC, protocolHTTP, protocolPprof}

// clientConfig configures where profiles are sent, and how.
type clientConfig struct {
	endpoint, protocol, compression, caFile string
	skipVerify                              bool
	headers                                 map[string]string
	timeout                                 time.Duration
}

var compressions = []string{"gzip", "none"}

func (c *clientConfig) flags(cmd *cobra.Command) {
	c.protocol, c.compression = protocolGRPC, "gzip"
	f := cmd.Flags()
	f.StringVar(&c.endpoint, "endpoint", "", "`ADDRESS` of the receiver, with https:// for TLS (default: localhost and the protocol's port)")
	addChoice(cmd, choice{&c.protocol, protocols}, "protocol", "", "`PROTOCOL` of the receiver: "+strings.Join(protocols, ", "))
	addChoice(cmd, choice{&c.compression, compressions}, "compression", "", "`METHOD` of compression: "+strings.Join(compressions, " or "))
	f.StringToStringVar(&c.headers, "header", nil, "header of each request, `NAME=VALUE`; may be repeated")
	f.Lookup("header").DefValue = "" // otherwise the help shows []
	f.StringVar(&c.caFile, "ca-file", "", "`FILE` with the certificates of authorities to trust, in PEM")
	f.BoolVar(&c.skipVerify, "insecure-skip-verify", false, "accept any certificate")
	f.DurationVar(&c.timeout, "timeout", 30*time.Second, "how long to wait for an answer")
}

// answer is what became of one message.
type answer struct {
	// requests is how many requests the message needed, refused how many profiles the receiver rejected.
	requests int
	refused  int64
	// err is nil if the receiver accepted all requests.
	err error
}

// sender sends messages.
type sender interface {
	send(ctx context.Context, pd pprofile.Profiles) answer
	close()
}

// connect returns the sender of the protocol. It does not wait for the receiver.
func (c *clientConfig) connect() (sender, error) {
	security, err := c.tls()
	if err != nil {
		return nil, err
	}
	endpoint := c.endpoint
	if endpoint == "" {
		endpoint = "localhost:" + map[string]string{protocolGRPC: "4317", protocolHTTP: "4318", protocolPprof: "4040"}[c.protocol]
	}
	scheme, address, hasScheme := strings.Cut(endpoint, "://")
	if !hasScheme {
		scheme, address = "http", endpoint
	}
	if scheme != "http" && scheme != "https" {
		return nil, fmt.Errorf("--endpoint %q must begin with http:// or https://, or with neither", endpoint)
	}
	if c.protocol == protocolGRPC {
		return c.connectGRPC(scheme == "https", strings.TrimSuffix(address, "/"), security)
	}
	target, err := url.Parse(scheme + "://" + address)
	if err != nil {
		return nil, err
	}
	path := "/v1development/profiles"
	if c.protocol == protocolPprof {
		path = "/v1/pprof"
	}
	if target.Path == "" || target.Path == "/" {
		target.Path = path
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.TLSClientConfig = security
	transport.MaxIdleConnsPerHost = 1000
	h := &httpSender{config: c, target: target, client: &http.Client{Transport: transport, Timeout: c.timeout}}
	if c.protocol == protocolPprof {
		return &pprofSender{h}, nil
	}
	return h, nil
}

func (c *clientConfig) tls() (*tls.Config, error) {
	config := &tls.Config{InsecureSkipVerify: c.skipVerify}
	if c.caFile == "" {
		return config, nil
	}
	pem, err := os.ReadFile(c.caFile)
	if err != nil {
		return nil, err
	}
	config.RootCAs = x509.NewCertPool()
	if !config.RootCAs.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%s holds no certificate in PEM", c.caFile)
	}
	return config, nil
}

type grpcSender struct {
	config  *clientConfig
	conn    *grpc.ClientConn
	client  pprofileotlp.GRPCClient
	options []grpc.CallOption
}

func (c *clientConfig) connectGRPC(secure bool, address string, security *tls.Config) (sender, error) {
	transport := insecure.NewCredentials()
	if secure {
		transport = credentials.NewTLS(security)
	}
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(transport))
	if err != nil {
		return nil, err
	}
	s := &grpcSender{config: c, conn: conn, client: pprofileotlp.NewGRPCClient(conn)}
	if c.compression == "gzip" {
		s.options = append(s.options, grpc.UseCompressor("gzip"))
	}
	return s, nil
}

func (s *grpcSender) close() { _ = s.conn.Close() }

func (s *grpcSender) send(ctx context.Context, pd pprofile.Profiles) answer {
	ctx, cancel := context.WithTimeout(metadata.NewOutgoingContext(ctx, metadata.New(s.config.headers)), s.config.timeout)
	defer cancel()
	response, err := s.client.Export(ctx, pprofileotlp.NewExportRequestFromProfiles(pd), s.options...)
	if err != nil {
		return answer{requests: 1, err: fmt.Errorf("%s: %s", status.Code(err), status.Convert(err).Message())}
	}
	return answerOf(response)
}

// answerOf reads a partial success.
func answerOf(response pprofileotlp.ExportResponse) answer {
	a := answer{requests: 1, refused: response.PartialSuccess().RejectedProfiles()}
	if text := response.PartialSuccess().ErrorMessage(); a.refused > 0 {
		a.err = fmt.Errorf("%d profiles were rejected: %s", a.refused, text)
	}
	return a
}

// httpSender posts OTLP in protobuf.
type httpSender struct {
	config *clientConfig
	target *url.URL
	client *http.Client
}

func (s *httpSender) close() { s.client.CloseIdleConnections() }

func (s *httpSender) send(ctx context.Context, pd pprofile.Profiles) answer {
	body, err := (&pprofile.ProtoMarshaler{}).MarshalProfiles(pd)
	if err != nil {
		return answer{err: err}
	}
	encoding := ""
	if s.config.compression == "gzip" {
		body, encoding = gzipped(body), "gzip"
	}
	text, err := s.post(ctx, s.target.String(), "application/x-protobuf", encoding, body)
	if err != nil {
		return answer{requests: 1, err: err}
	}
	response := pprofileotlp.NewExportResponse()
	if err := response.UnmarshalProto(text); err != nil {
		return answer{requests: 1, err: fmt.Errorf("the answer is not one of OTLP: %w", err)}
	}
	return answerOf(response)
}

// maxAnswerBytes bounds what is read of an answer.
const maxAnswerBytes = 64 << 10

func (s *httpSender) post(ctx context.Context, target, content, encoding string, body []byte) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, target, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", content)
	if encoding != "" {
		request.Header.Set("Content-Encoding", encoding)
	}
	for name, value := range s.config.headers {
		request.Header.Set(name, value)
	}
	response, err := s.client.Do(request)
	if err != nil {
		var wrapped *url.Error
		if errors.As(err, &wrapped) {
			err = wrapped.Err // the address is known
		}
		return nil, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, maxAnswerBytes))
	if response.StatusCode/100 == 2 {
		return text, err
	}
	return nil, errors.New(response.Status + printable(response.Header.Get("Content-Type"), text))
}

// printable returns an error's text, without the bytes around it if the answer is protobuf.
func printable(content string, text []byte) string {
	if !strings.HasPrefix(content, "text/") && !strings.HasPrefix(content, "application/json") {
		text = bytes.TrimLeftFunc(bytes.Map(func(r rune) rune {
			if r < ' ' || r == '\ufffd' {
				return -1
			}
			return r
		}, text), func(r rune) bool { return r == '"' })
	}
	if text = bytes.TrimSpace(text); len(text) == 0 {
		return ""
	}
	return ": " + string(text)
}

// pprofSender posts a pprof for each kind of profile of each resource.
type pprofSender struct{ *httpSender }

func (s *pprofSender) send(ctx context.Context, pd pprofile.Profiles) (a answer) {
	payloads, _, err := encode.Encode(pd)
	if err != nil {
		return answer{err: err}
	}
	for _, payload := range payloads {
		target, query := *s.target, s.target.Query()
		for key, value := range pd.ResourceProfiles().At(payload.ResourceIndex).Resource().Attributes().All() {
			if key != "service.name" {
				key = "attr." + key
			}
			query.Set(key, value.AsString())
		}
		target.RawQuery = query.Encode()
		body := payload.Bytes
		if s.config.compression == "gzip" {
			body = gzipped(body)
		}
		a.requests++
		if _, err := s.post(ctx, target.String(), "application/octet-stream", "", body); err != nil {
			a.err = errors.Join(a.err, err)
			a.refused++
		}
	}
	return a
}
