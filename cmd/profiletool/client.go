// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/config/configcompression"
	"go.opentelemetry.io/collector/config/configgrpc"
	"go.opentelemetry.io/collector/config/confighttp"
	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/config/configtls"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.opentelemetry.io/collector/pdata/pprofile/pprofileotlp"
	nometric "go.opentelemetry.io/otel/metric/noop"
	notrace "go.opentelemetry.io/otel/trace/noop"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/otelcol-profiles/otelcol-profiles/internal/service/httpclient"
	"github.com/otelcol-profiles/otelcol-profiles/internal/service/httpserver"
)

// The protocols.
const (
	protocolGRPC = "otlp_grpc"
	protocolHTTP = "otlp_http"
)

var protocols = []string{protocolGRPC, protocolHTTP}

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
	f.StringVar(&c.endpoint, "endpoint", "",
		"`ADDRESS` of the receiver, with https:// for TLS (default: localhost and the protocol's port)")
	addChoice(cmd, choice{&c.protocol, protocols}, "protocol", "",
		"`PROTOCOL` of the receiver: "+strings.Join(protocols, " or "))
	addChoice(cmd, choice{&c.compression, compressions}, "compression", "",
		"`METHOD` of compression: "+strings.Join(compressions, " or "))
	addPairsFlag(cmd, &c.headers, "header", "header of each request, `NAME=VALUE`")
	f.StringVar(&c.caFile, "ca-file", "", "`FILE` with the certificates of authorities to trust, in PEM")
	f.BoolVar(&c.skipVerify, "insecure-skip-verify", false, "accept any certificate")
	f.DurationVar(&c.timeout, "timeout", 30*time.Second, "how long to wait for an answer")
}

type sender interface {
	// send returns no error if the receiver accepted all of the message.
	send(ctx context.Context, pd pprofile.Profiles) error
	close()
}

// connect returns the sender of the protocol. It does not wait for the receiver.
func (c *clientConfig) connect() (sender, error) {
	endpoint := cmp.Or(c.endpoint, map[string]string{protocolGRPC: "localhost:4317", protocolHTTP: "localhost:4318"}[c.protocol])
	scheme, address, hasScheme := strings.Cut(endpoint, "://")
	if !hasScheme {
		scheme, address = "http", endpoint
	}
	security := configtls.ClientConfig{Insecure: true}
	switch scheme {
	case "http":
	case "https":
		security = configtls.ClientConfig{Config: configtls.Config{CAFile: c.caFile}, InsecureSkipVerify: c.skipVerify}
	default:
		return nil, fmt.Errorf("--endpoint %q must begin with http:// or https://, or with neither", endpoint)
	}
	settings := component.TelemetrySettings{Logger: zap.NewNop(), TracerProvider: notrace.NewTracerProvider(),
		MeterProvider: nometric.NewMeterProvider()}
	if c.protocol == protocolGRPC {
		address = strings.TrimSuffix(address, "/")
		if _, _, err := net.SplitHostPort(address); err != nil && scheme == "http" { // gRPC itself would take 443
			address += ":4317"
		}
		config := configgrpc.ClientConfig{Endpoint: address, TLS: security,
			Compression: configcompression.Type(c.compression)}
		conn, err := config.ToClientConn(context.Background(), nil, settings)
		if err != nil {
			return nil, err
		}
		return &grpcSender{config: c, conn: conn, client: pprofileotlp.NewGRPCClient(conn)}, nil
	}
	target, err := url.Parse(scheme + "://" + address)
	if err != nil {
		return nil, err
	}
	if target.Path == "" || target.Path == "/" {
		target.Path = "/v1development/profiles"
	}
	config := confighttp.NewDefaultClientConfig()
	config.TLS, config.Timeout, config.Compression = security, c.timeout, configcompression.Type(c.compression)
	// The connections of a load stay open between its messages.
	config.Keepalive = configoptional.Some(confighttp.KeepaliveClientConfig{IdleConnTimeout: time.Minute,
		MaxIdleConns: 1000, MaxIdleConnsPerHost: 1000})
	h := &httpSender{headers: c.headers, target: target.String(), client: httpclient.Client{
		Config: config, Telemetry: settings, UserAgent: "profiletool/" + toolVersion,
	}}
	return h, h.client.Start(context.Background(), noHost{})
}

// noHost is a component.Host without extensions.
type noHost struct{}

func (noHost) GetExtensions() map[component.ID]component.Component { return nil }

// grpcSender sends OTLP over gRPC.
type grpcSender struct {
	config *clientConfig
	conn   *grpc.ClientConn
	client pprofileotlp.GRPCClient
}

func (s *grpcSender) close() { _ = s.conn.Close() }

func (s *grpcSender) send(ctx context.Context, pd pprofile.Profiles) error {
	ctx, cancel := context.WithTimeout(metadata.NewOutgoingContext(ctx, metadata.New(s.config.headers)), s.config.timeout)
	defer cancel()
	response, err := s.client.Export(ctx, pprofileotlp.NewExportRequestFromProfiles(pd))
	if err != nil {
		return fmt.Errorf("%s: %s", status.Code(err), status.Convert(err).Message())
	}
	return rejected(response)
}

func rejected(response pprofileotlp.ExportResponse) error {
	if partial := response.PartialSuccess(); partial.RejectedProfiles() > 0 {
		return fmt.Errorf("%s rejected: %s", count(int(partial.RejectedProfiles()), "profile"), partial.ErrorMessage())
	}
	return nil
}

// httpSender posts OTLP in protobuf.
type httpSender struct {
	headers map[string]string
	target  string
	client  httpclient.Client
}

func (s *httpSender) close() { s.client.Shutdown() }

func (s *httpSender) send(ctx context.Context, pd pprofile.Profiles) error {
	body, err := sizer.MarshalProfiles(pd)
	if err != nil {
		return err
	}
	header := http.Header{"Content-Type": {httpserver.ContentProtobuf}}
	header.Set(pprofileotlp.DevelopmentVersionHeader, pprofileotlp.DevelopmentVersion)
	for name, value := range s.headers {
		header.Set(name, value)
	}
	answer, err := s.client.Post(ctx, s.target, header, body)
	if err != nil {
		return err
	}
	if !answer.IsAccepted() {
		return errors.New(strings.TrimRight(fmt.Sprintf("%d %s: %s", answer.Status, http.StatusText(answer.Status),
			answer.Message), ": "))
	}
	response := pprofileotlp.NewExportResponse()
	if err := response.UnmarshalProto(answer.Body); err != nil {
		return fmt.Errorf("the answer is not one of OTLP: %w", err)
	}
	return rejected(response)
}
