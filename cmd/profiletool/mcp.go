// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/spf13/cobra"

	"github.com/otelcol-profiles/otelcol-profiles/internal/service/httpserver"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/mcp"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/query"
)

func newMCP(term *terminal) *cobra.Command {
	var remote string
	var headers map[string]string
	maxBytes := 1 << 30
	r := newReader(term)
	cmd := &cobra.Command{
		Use:     "mcp FILE... | --url URL",
		Short:   "Answer an assistant about files or a remote store",
		GroupID: groupNetwork,
		Long: `Mcp answers an assistant by the Model Context Protocol, over standard input and output: about files, or with --url about the
exporter profile_store of a collector, whose section mcp must be on. It is read only. The assistant starts it;
docs/mcp.md has the configuration for that.

For files, the present is the end of the latest profile, and a question that names no time is about all of them.`,
		Args: func(cmd *cobra.Command, args []string) error {
			if remote != "" {
				return cobra.NoArgs(cmd, args)
			}
			return needFile(cmd, args)
		},
		RunE: func(cmd *cobra.Command, paths []string) error {
			transport := &sdk.IOTransport{Reader: io.NopCloser(term.in), Writer: nopWriteCloser{term.out},
				MaxLineLength: mcp.MaxRequestBytes}
			var server *sdk.Server
			if remote != "" {
				var err error
				if server, err = bridge(cmd.Context(), remote, headers); err != nil {
					return err
				}
			} else {
				kept, now, err := keep(r, paths, maxBytes)
				if err != nil {
					return err
				}
				server = mcp.New(mcp.Settings{
					Store: kept.Querier, Version: toolVersion, Now: func() time.Time { return now },
					Queries: query.New(query.Limits{MaxConcurrent: 4, Timeout: time.Minute}),
				})
			}
			if err := server.Run(cmd.Context(), transport); err != nil && !errors.Is(err, io.EOF) && cmd.Context().Err() == nil {
				return err
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&remote, "url", "", "`URL` of a store whose server has mcp on, such as http://host:4042")
	addPairsFlag(cmd, &headers, "header", "header of each request to --url, `NAME=VALUE`")
	cmd.Flags().IntVar(&maxBytes, "max-bytes", maxBytes, "memory for profiles, in bytes; the oldest ones make room")
	r.flags(cmd)
	return cmd
}

type nopWriteCloser struct{ io.Writer }

func (nopWriteCloser) Close() error { return nil }

// bridge returns a server with the tools of a remote one, which it asks.
func bridge(ctx context.Context, url string, headers map[string]string) (*sdk.Server, error) {
	if url = strings.TrimRight(url, "/"); !strings.HasSuffix(url, "/mcp") {
		url += "/mcp"
	}
	implementation := &sdk.Implementation{Name: "profiletool", Version: toolVersion}
	session, err := sdk.NewClient(implementation, nil).Connect(ctx, &sdk.StreamableClientTransport{
		Endpoint: url, DisableStandaloneSSE: true,
		HTTPClient: &http.Client{Transport: withHeaders(headers), Timeout: 2 * time.Minute,
			CheckRedirect: httpserver.SameOriginOnly},
	}, nil)
	if err != nil {
		return nil, fmt.Errorf("ask %s: %w; is the section `mcp` of its exporter `profile_store` on?", url, err)
	}
	var instructions string
	if hello := session.InitializeResult(); hello != nil {
		instructions = hello.Instructions
	}
	server := sdk.NewServer(implementation, &sdk.ServerOptions{
		Instructions: instructions, Capabilities: &sdk.ServerCapabilities{Tools: &sdk.ToolCapabilities{}},
	})
	tools, err := session.ListTools(ctx, nil)
	if err != nil {
		return nil, fmt.Errorf("ask %s for its tools: %w", url, err)
	}
	for _, tool := range tools.Tools {
		server.AddTool(tool, func(ctx context.Context, request *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			return session.CallTool(ctx, &sdk.CallToolParams{Name: request.Params.Name, Arguments: request.Params.Arguments})
		})
	}
	return server, nil
}

type withHeaders map[string]string

func (h withHeaders) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	for name, value := range h {
		r.Header.Set(name, value)
	}
	return http.DefaultTransport.RoundTrip(r)
}
