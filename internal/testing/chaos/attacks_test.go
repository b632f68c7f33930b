// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package chaos

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest/worst"
)

// answer is what a sender got.
type answer struct {
	text string
	wire int
}

func (a answer) String() string { return a.text }

// unexpected marks answers that no sender should get.
const unexpected = "unexpected"

// message is a request that is sent again and again.
type message struct {
	url, contentType, encoding string
	body                       []byte
}

// The clients of senders. An attacker opens a connection for each request.
var (
	attackerClient = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	grpcClient     = func() *http.Client {
		protocols := new(http.Protocols)
		protocols.SetUnencryptedHTTP2(true)
		return &http.Client{Transport: &http.Transport{Protocols: protocols, DisableKeepAlives: true}}
	}()
)

// send posts the message, over gRPC if its content type says so. What is refused must have a reason.
func (m message) send(ctx context.Context) answer {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, m.url, bytes.NewReader(m.body))
	if err != nil {
		return answer{unexpected + ": " + err.Error(), len(m.body)}
	}
	request.Header.Set("Content-Type", m.contentType)
	client := attackerClient
	isGRPC := m.contentType == "application/grpc"
	if isGRPC {
		client = grpcClient
		request.Header.Set("TE", "trailers")
		request.Header.Set("Grpc-Encoding", m.encoding)
	} else if m.encoding != "" {
		request.Header.Set("Content-Encoding", m.encoding)
	}
	response, err := client.Do(request)
	if err != nil {
		return answer{fmt.Sprintf("%s: no answer: %.200s", unexpected, err), len(m.body)}
	}
	defer response.Body.Close()
	body, _ := io.ReadAll(response.Body)
	text := response.Status
	isExpected := response.StatusCode/100 == 2 ||
		len(body) > 0 && (response.StatusCode/100 == 4 || response.StatusCode == http.StatusServiceUnavailable)
	if isGRPC {
		code, reason := response.Trailer.Get("Grpc-Status"), response.Trailer.Get("Grpc-Message")
		if code == "" {
			code, reason = response.Header.Get("Grpc-Status"), response.Header.Get("Grpc-Message")
		}
		// 3 is InvalidArgument, 8 ResourceExhausted, 14 Unavailable.
		isExpected = code == "0" || reason != "" && slices.Contains([]string{"3", "8", "14"}, code)
		text = "grpc " + code
		body = []byte(reason)
	}
	if !isExpected {
		text = fmt.Sprintf("%s: %s %.200q", unexpected, text, body)
	}
	return answer{text, len(m.body)}
}

// attacks returns what a configuration is attacked with: all inputs or, if it is short or another configuration has the
// same doors, those of mostCostly.
func (r *siege) attacks(short bool) (all []attack) {
	senders := []int{1, 8}
	if short {
		senders, r.sizes = []int{8}, []int{2 * mib, 16 * mib}
	}
	r.each(func(name string, size int, make func(t *testing.T) message) {
		if !r.all || short {
			if !slices.Contains(mostCostly, name) {
				return
			}
		}
		all = append(all, attack{
			name: name + " of " + sizeNames[size], senders: senders,
			prepare: func(t *testing.T) func(context.Context) answer { t.Helper(); return make(t).send },
		})
	})
	if short {
		return all
	}
	return slices.Concat(all, r.smallAttacks(), r.targetAttacks(), r.pageAttacks(), r.topicAttacks())
}

// mostCostly are the inputs of LIMITS=short, and of configurations whose doors are those of others.
var mostCostly = []string{
	"push pprof: labels of mixed units", "push pprof: distinct labels", "push pprof: lines", "push pprof: zeros",
	"push V8: samples", "push Go trace: batches without events", "push Go trace: CPU samples", "push JFR: a long state",
	"push perf: inlined", "push folded: deep", "push raw: distinct labels", "push form: distinct labels",
	"push push.v1 of a pprof: distinct labels",
	"otlp gRPC: samples", "otlp gRPC: samples of a long name", "otlp gRPC: small stacks",
	"otlp gRPC: many small samples", "otlp gRPC: strings", "otlp HTTP: samples",
	"otlp JSON: samples", "splunk gRPC: small records", "splunk JSON: records",
	"splunk HTTP: attributes of a stack", "splunk HTTP: pprof: labels of mixed units",
	"hec: many fields", "hec: a large object", "hec: pprof: labels of mixed units", "hec: pprof: distinct labels",
}

// each calls add for each message.
func (r *siege) each(add adder) {
	r.addPushes(add)
	r.addOTLP(add)
	r.addSplunk(add)
}

// smallAttacks are all inputs at 256 KiB, each sender sending those of a door one after the other.
func (r *siege) smallAttacks() (all []attack) {
	small := *r
	small.sizes = []int{256 << 10}
	byDoor := map[string][]func(t *testing.T) message{}
	small.each(func(name string, _ int, make func(t *testing.T) message) {
		door, _, _ := strings.Cut(name, " ")
		byDoor[door] = append(byDoor[door], make)
	})
	for _, door := range slices.Sorted(maps.Keys(byDoor)) {
		all = append(all,
			attack{name: door + ": all of 256 KiB", senders: []int{1, 8},
				prepare: func(t *testing.T) func(context.Context) answer {
					t.Helper()
					var messages []message
					for _, make := range byDoor[door] {
						messages = append(messages, make(t))
					}
					var senders atomic.Int64
					return func(ctx context.Context) (got answer) {
						first := int(senders.Add(1)) * len(messages) / 8
						for i := range messages {
							a := messages[(first+i)%len(messages)].send(ctx)
							if got.wire = max(got.wire, a.wire); got.text == "" || strings.HasPrefix(a.text, unexpected) {
								got.text = a.text
							}
						}
						return got
					}
				}})
	}
	return all
}

// adder adds a message with an input of a size. The name begins with the door.
type adder = func(name string, size int, make func(t *testing.T) message)

// sizeNames are the names of the sizes of inputs.
var sizeNames = map[int]string{
	256 << 10: "256 KiB", 2 * mib: "2 MiB", 16 * mib: "16 MiB", 8_000_000: "8 MB", 20 * mib: "20 MiB", 32 * mib: "32 MiB",
	64 * mib: "64 MiB", 128 * mib: "128 MiB",
}

// inputs calls add for each input, at the largest size that a door accepts, and at smaller ones: what limits on memory
// and on the number of entries do not refuse costs more than what they do. fits is what is left for the input: what
// surrounds it needs a place, too.
func (r *siege) inputs(of worst.Inputs, largest int, add func(name string, size, fits int, input func(int) []byte)) {
	sizes := r.sizes
	if sizes == nil {
		sizes = []int{2 * mib, 8_000_000, largest}
	}
	var last int
	for _, name := range slices.Sorted(maps.Keys(of)) {
		for _, size := range sizes {
			if size = min(size, largest); size != last {
				add(name, size, size-size/100, of[name])
			}
			last = size
		}
		last = 0
	}
}

func (r *siege) addPushes(add adder) {
	largest := r.doors.push
	if largest == 0 {
		return
	}
	post := func(name, path, contentType, encoding string, size int, body func() []byte) {
		add("push "+name, size, func(*testing.T) message {
			return message{"http://" + r.node.pprof + path, contentType, encoding, body()}
		})
	}
	const octets, service = "application/octet-stream", "?service.name=worst"
	formats := map[string]worst.Inputs{
		"pprof": worst.PProf, "V8": worst.V8, "Go trace": worst.GoTrace, "JFR": worst.JFR, "perf": worst.Perf,
		"folded": worst.Folded, "speedscope": worst.Speedscope, "Firefox": worst.Firefox,
		"trace events": worst.TraceEvents, "PyTorch memory": worst.TorchMemory,
	}
	for _, format := range slices.Sorted(maps.Keys(formats)) {
		r.inputs(formats[format], largest, func(name string, size, fits int, input func(int) []byte) {
			post(format+": "+name, "/v1/profiles"+service, octets, "", size, func() []byte { return profiletest.Gzip(input(fits)) })
		})
	}
	// The other ways, with a few payloads each.
	r.inputs(worst.PProf.Only("samples", "distinct labels", "text as labels"), largest,
		func(name string, size, fits int, input func(int) []byte) {
			whole, half := func() []byte { return input(fits) }, func() []byte { return profiletest.Gzip(input(fits / 2)) }
			packed := func() []byte { return profiletest.Gzip(whole()) }
			post("raw: "+name, "/v1/pprof"+service, octets, "", size, whole)
			post("gzip: "+name, "/v1/pprof"+service, octets, "gzip", size, packed)
			post("zstd: "+name, "/v1/pprof"+service, octets, "zstd", size, func() []byte { return worst.Zstd(whole()) })
			post("gzip in gzip: "+name, "/v1/pprof"+service, octets, "gzip", size, func() []byte { return profiletest.Gzip(packed()) })
			post("form: "+name, "/v1/pprof"+service, formType, "", size, func() []byte {
				return form("a.pb.gz", half(), "b.pb.gz", half())
			})
			post("Datadog: "+name, "/profiling/v1/input", formType, "", size, func() []byte {
				return form("event.json", datadogEvent, "cpu.pprof", packed())
			})
			post("ingest: "+name, "/ingest?name=worst&format=pprof", formType, "", size, func() []byte {
				return form("profile", packed())
			})
			post("ingest with previous: "+name, "/ingest?name=worst&format=pprof", formType, "", size, func() []byte {
				return form("profile", half(), "prev_profile", half())
			})
			post("push.v1 of a pprof: "+name, pushV1, "application/proto", "gzip", size, func() []byte {
				return profiletest.Gzip(worst.PushV1Of(packed()))
			})
		})
	uploads := worst.Inputs{
		"Datadog tags": func(size int) []byte {
			return form("event.json", []byte(`{"tags_profiler":"`+strings.Repeat("a:b,", size/4)+`"}`), "cpu.pprof",
				worst.PProf["samples"](1000))
		},
		"Datadog nesting": func(size int) []byte {
			return form("event.json", []byte(strings.Repeat(`{"info":`, size/8)), "cpu.pprof", worst.PProf["samples"](1000))
		},
		"long headers": func(size int) []byte {
			return []byte("--worst\r\nContent-Disposition: form-data; name=a; filename=b\r\n" + strings.Repeat("A: b\r\n",
				size/6) + "\r\n")
		},
		"many boundaries": func(size int) []byte { return bytes.Repeat([]byte("--worst\r\n\r\n"), size/11) },
		"many parts": func(size int) []byte {
			var parts []any
			for range 128 {
				parts = append(parts, "a.pprof", worst.PProf["samples"](size/128))
			}
			return form(parts...)
		},
	}
	r.inputs(uploads, largest, func(name string, size, fits int, input func(int) []byte) {
		post(name, "/profiling/v1/input", formType, "gzip", size, func() []byte { return profiletest.Gzip(input(fits)) })
	})
	r.inputs(worst.JFRLabels, largest, func(name string, size, fits int, input func(int) []byte) {
		post("ingest JFR: "+name, "/ingest?name=worst&format=jfr", formType, "", size, func() []byte {
			return form("jfr", profiletest.Gzip(worst.JFR["spans of a context"](fits/2)), "labels", profiletest.Gzip(input(fits/2)))
		})
	})
	for _, way := range []struct {
		name, path, contentType string
		inputs                  worst.Inputs
	}{
		{"ingest groups: ", "/ingest?name=worst&format=groups", octets, worst.Folded},
		{"ingest lines: ", "/ingest?name=worst&format=lines", octets, worst.Folded},
		{"push.v1: ", pushV1, "application/proto", worst.PushV1},
		{"push.v1 JSON: ", pushV1, "application/json", worst.PushV1JSON},
	} {
		r.inputs(way.inputs, largest, func(name string, size, fits int, input func(int) []byte) {
			post(way.name+name, way.path, way.contentType, "gzip", size, func() []byte { return profiletest.Gzip(input(fits)) })
		})
	}
}

var datadogEvent = []byte(`{"tags_profiler":"service:worst"}`)

const (
	pushV1   = "/push.v1.PusherService/Push"
	formType = "multipart/form-data; boundary=worst"
)

// form returns a form of names and contents.
func form(parts ...any) []byte {
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	_ = w.SetBoundary("worst")
	for i := 0; i < len(parts); i += 2 {
		name := parts[i].(string)
		part, _ := w.CreatePart(textproto.MIMEHeader{ // a buffer accepts everything
			"Content-Disposition": {fmt.Sprintf("form-data; name=%q; filename=%q", strings.TrimSuffix(name, ".json"), name)},
		})
		_, _ = part.Write(parts[i+1].([]byte))
	}
	_ = w.Close()
	return b.Bytes()
}

// overGRPC is a message of gRPC, compressed.
func overGRPC(address, method string, plain []byte) message {
	packed := profiletest.Gzip(plain)
	return message{"http://" + address + method, "application/grpc", "gzip",
		append(binary.BigEndian.AppendUint32([]byte{1}, uint32(len(packed))), packed...)}
}

const (
	profilesMethod = "/opentelemetry.proto.collector.profiles.v1development.ProfilesService/Export"
	logsMethod     = "/opentelemetry.proto.collector.logs.v1.LogsService/Export"
	protobuf       = "application/x-protobuf"
	jsonType       = "application/json"
)

func (r *siege) addOTLP(add adder) {
	if r.doors.otlp == 0 {
		return
	}
	r.inputs(worst.OTLP, r.doors.otlp, func(name string, size, fits int, input func(int) []byte) {
		add("otlp gRPC: "+name, size, func(*testing.T) message { return overGRPC(r.node.otlp, profilesMethod, input(fits)) })
	})
	address := r.node.otlpHTTP + "/v1development/profiles"
	r.addHTTP(add, "otlp HTTP: ", address, protobuf,
		worst.OTLP.Only("samples", "small stacks", "strings", "many small samples", "one long label"))
	r.addHTTP(add, "otlp JSON: ", address, jsonType, worst.OTLPJSON)
}

// addHTTP adds attacks whose bodies are compressed.
func (r *siege) addHTTP(add adder, prefix, address, contentType string, inputs worst.Inputs) {
	r.inputs(inputs, 20*mib, func(name string, size, fits int, input func(int) []byte) {
		add(prefix+name, size, func(*testing.T) message {
			return message{"http://" + address, contentType, "gzip", profiletest.Gzip(input(fits))}
		})
	})
}

// pprofsOfRecords are those that are sent within log records, since a door before it sends all.
var pprofsOfRecords = []string{
	"samples", "lines", "mappings", "labels of mixed units", "labels of one key", "distinct labels", "reached locations",
	"many keys of one sample", "many types", "text as labels",
}

func (r *siege) addSplunk(add adder) {
	pprofs := worst.PProf.Only(pprofsOfRecords...)
	maps.Copy(pprofs, worst.SplunkPProf)
	if r.doors.splunk {
		grpc, http := r.node.splunk, r.node.splunkHTTP
		if strings.HasPrefix(r.config, kubernetes) { // its otlp receiver takes log records, too
			grpc, http = r.node.otlp, r.node.otlpHTTP
		}
		http += "/v1/logs"
		r.inputs(worst.Logs, 20*mib, func(name string, size, fits int, input func(int) []byte) {
			add("splunk gRPC: "+name, size, func(*testing.T) message { return overGRPC(grpc, logsMethod, input(fits)) })
		})
		r.addHTTP(add, "splunk HTTP: ", http, protobuf,
			worst.Logs.Only("small records", "many stacks", "attributes of a stack"))
		r.addHTTP(add, "splunk JSON: ", http, jsonType, worst.LogsJSON)
		r.inputs(pprofs, 128*mib, func(name string, size, fits int, input func(int) []byte) {
			add("splunk HTTP: pprof: "+name, size, func(*testing.T) message {
				return message{"http://" + http, protobuf, "gzip",
					profiletest.Gzip(worst.LogRecord(encoded(input(fits)), worst.PProfAttributes()))}
			})
		})
	}
	if r.doors.hec {
		address := r.node.hec + "/services/collector/event"
		r.addHTTP(add, "hec: ", address, jsonType, worst.HEC)
		r.inputs(pprofs, 128*mib, func(name string, size, fits int, input func(int) []byte) {
			add("hec: pprof: "+name, size, func(t *testing.T) message {
				return message{"http://" + address, jsonType, "", hecEvent(t, "worst", encoded(input(fits)))}
			})
		})
	}
}

// hecEvent is an event of Splunk's agents.
func hecEvent(t testing.TB, service, pprof string) []byte {
	t.Helper()
	event, err := json.Marshal(map[string]any{"event": pprof, "sourcetype": "otel.profiling", "fields": map[string]string{
		"service.name": service, "profiling.data.format": "pprof-gzip-base64", "profiling.data.type": "cpu",
	}})
	require.NoError(t, err)
	return event
}

// encoded is a pprof as the body of a log record.
func encoded(pprof []byte) string { return base64.StdEncoding.EncodeToString(profiletest.Gzip(pprof)) }
