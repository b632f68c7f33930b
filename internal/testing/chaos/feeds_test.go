// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package chaos

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest/worst"
)

// aMillionTargets is a list of targets of 17.5 MB in the format of Prometheus. Nobody listens on their port.
var aMillionTargets = sync.OnceValue(func() string {
	var text strings.Builder
	text.WriteString(`[{"targets":["127.0.0.1:1"`)
	for i := range 1_000_000 {
		fmt.Fprintf(&text, `,"127.%d.%d.%d:1"`, 1+i>>16, i>>8&0xff, i&0xff)
	}
	text.WriteString("]}]")
	return text.String()
})

// discovery answers http_sd with what an attack sets.
type discovery struct {
	mu   sync.Mutex
	list string
	url  string
}

func startDiscovery(t *testing.T) *discovery {
	t.Helper()
	d := &discovery{list: "[]"}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		d.mu.Lock()
		defer d.mu.Unlock()
		w.Header().Set("Content-Type", jsonType)
		_, _ = w.Write([]byte(d.list))
	}))
	t.Cleanup(server.Close)
	d.url = server.URL
	return d
}

func (d *discovery) set(list string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.list = list
}

// targetAttacks are lists of very many targets, and targets that answer the worst inputs.
func (r *siege) targetAttacks() (all []attack) {
	add := func(name string, set func(list string), list func(t *testing.T) string) {
		all = append(all,
			attack{name: "targets: " + name, senders: []int{1}, prepare: func(t *testing.T) func(context.Context) answer {
				t.Helper()
				set("[]")
				targets := list(t)
				return func(ctx context.Context) answer {
					set(targets)
					defer set("[]")
					select {
					case <-ctx.Done():
					case <-time.After(attackTime):
					}
					return answer{"listed", len(targets)}
				}
			}})
	}
	million := func(*testing.T) string { return aMillionTargets() }
	if r.discovery != nil {
		add("a million of http_sd", r.discovery.set, million)
	}
	if !r.doors.targets {
		return all
	}
	inFile := func(list string) { writeText(r.test, r.node.targets, list) }
	add("a million of a file", inFile, million)
	add("that answer the worst pprofs", inFile, func(t *testing.T) string {
		var bodies [][]byte
		for _, name := range pprofsOfRecords {
			bodies = append(bodies, profiletest.Gzip(worst.PProf[name](8_000_000)))
		}
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
			_, _ = w.Write(bodies[len(request.URL.Path)%len(bodies)])
		}))
		r.test.Cleanup(server.Close)
		address := server.Listener.Addr()
		var list strings.Builder
		for i := range 32 {
			fmt.Fprintf(&list, "- targets: [%q]\n  labels: {service_name: worst-%d}\n", address, i)
		}
		return list.String()
	})
	return all
}

// topicAttacks are messages in the topic that a gateway reads.
func (r *siege) topicAttacks() (all []attack) {
	if !r.doors.kafka {
		return nil
	}
	costly := worst.OTLP.Only("samples", "small stacks", "many small samples", "strings", "many types and samples",
		"one long label")
	r.inputs(costly, 20*mib, func(name string, size, fits int, input func(int) []byte) {
		all = append(all,
			attack{name: "topic: " + name + " of " + sizeNames[size], senders: []int{1, 8},
				prepare: func(t *testing.T) func(context.Context) answer {
					t.Helper()
					client, err := kgo.NewClient(kgo.SeedBrokers(r.broker), kgo.DefaultProduceTopic(kafkaTopic),
						kgo.ProducerBatchCompression(kgo.GzipCompression()), kgo.ProducerBatchMaxBytes(64*mib),
						kgo.BrokerMaxWriteBytes(100*mib))
					require.NoError(t, err)
					r.test.Cleanup(client.Close)
					message := input(fits)
					return func(ctx context.Context) answer {
						if err := client.ProduceSync(ctx, &kgo.Record{Value: message}).FirstErr(); err != nil {
							return answer{unexpected + ": " + err.Error(), len(message)}
						}
						time.Sleep(time.Second) // the gateway reads it after the answer
						return answer{"produced", len(message)}
					}
				}})
	})
	return all
}
