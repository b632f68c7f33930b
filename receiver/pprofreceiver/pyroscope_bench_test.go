// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pprofreceiver

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver/internal/sourcetest"
)

// BenchmarkPyroscopePush compares pushes of one pprof to Pyroscope's routes with one to /v1/pprof, from the request to
// a pipeline that discards it.
func BenchmarkPyroscopePush(b *testing.B) {
	f := startFixture(b, serverOnly)
	f.Next.Discard = true
	for _, input := range []string{"go-mutex", "go-cpu-labels", "go-heap", "go-build-merged-cpu-large"} {
		data := sourcetest.Captured(b, input+".pb.gz")
		formBody, formType := form(b, "=profile", data, "=sample_type_config", []byte(`{"alloc_space":{"units":"bytes"}}`))
		message, err := proto.Marshal(pushRequest(b, data))
		if err != nil {
			b.Fatal(err)
		}
		const query = "?name=shop%7Bregion%3Deu%2C__session_id__%3D77e425ea48b3919f%7D&from=1795167161000000000&until=1795167171000000000&spyName=gospy&sampleRate=100"
		for _, impl := range []struct {
			name, url, contentType string
			body                   []byte
		}{
			{"v1_pprof", "/v1/pprof?service.name=shop&attr.region=eu", "", data},
			{"ingest", "/ingest" + query, "", data},
			{"ingest_form", "/ingest" + query, formType, formBody},
			{"push_v1", connectPath, "application/proto", message},
		} {
			b.Run("input="+input+"/impl="+impl.name, func(b *testing.B) {
				b.ReportAllocs()
				b.SetBytes(int64(len(data)))
				cpu := profiletest.ProcessCPU()
				for b.Loop() {
					r := httptest.NewRequest(http.MethodPost, impl.url, bytes.NewReader(impl.body))
					r.Header.Set("Content-Type", impl.contentType)
					w := httptest.NewRecorder()
					f.pushServer().ServeHTTP(w, r)
					if w.Code >= 300 {
						b.Fatal(w.Code, w.Body)
					}
				}
				b.ReportMetric(float64(profiletest.ProcessCPU()-cpu)/float64(b.N), "cpu-ns/op")
			})
		}
	}
}
