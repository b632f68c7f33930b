// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pyroscopetest

import (
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	metastorev1 "github.com/grafana/pyroscope/api/gen/proto/go/metastore/v1"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/collectortest"
)

// Real is a Pyroscope, a single process with the defaults of its binary, but for addresses, limits on the rate, and
// reports about itself. It listens on loopback only.
type Real struct {
	*collectortest.Process
	// URL is where it takes profiles and answers queries, Internal where its parts call each other over gRPC. Dir has all
	// of its files.
	URL, Internal, Dir string
	binary             string
	flags              []string
}

// NewReal returns the Pyroscope of a binary, which Start starts. Further flags take precedence.
func NewReal(t testing.TB, binary string, flags ...string) *Real {
	address := func() string { return collectortest.FreeAddress(t) }
	port := func(address string) string {
		_, port, err := net.SplitHostPort(address)
		require.NoError(t, err)
		return port
	}
	web, internal, gossip, raft := port(address()), port(address()), port(address()), "127.0.0.1:"+port(address())
	return &Real{URL: "http://127.0.0.1:" + web, Internal: "127.0.0.1:" + internal, Dir: t.TempDir(), binary: binary,
		flags: append([]string{
			"-server.http-listen-address=127.0.0.1", "-server.http-listen-port=" + web,
			"-server.grpc-listen-address=127.0.0.1", "-server.grpc-listen-port=" + internal,
			"-memberlist.bind-addr=127.0.0.1", "-memberlist.bind-port=" + gossip, "-memberlist.advertise-addr=127.0.0.1",
			"-architecture.storage=v2", "-metastore.address=127.0.0.1:" + internal,
			"-query-backend.address=127.0.0.1:" + internal,
			"-metastore.raft.bind-address=" + raft, "-metastore.raft.advertise-address=" + raft,
			"-metastore.raft.server-id=" + raft,
			"-distributor.ring.instance-addr=127.0.0.1", "-segment-writer.lifecycler.addr=127.0.0.1",
			"-overrides-exporter.ring.instance-addr=127.0.0.1",
			"-self-profiling.disable-push=true", "-usage-stats.enabled=false",
			"-distributor.ingestion-rate-limit-mb=1000", "-distributor.ingestion-burst-size-mb=1000",
		}, flags...)}
}

// Blocks returns how many blocks there are of each level of compaction, and their bytes. Files that were compacted into
// others, and are not deleted yet, do not count.
func (r *Real) Blocks(t testing.TB) (text string, bytes uint64) {
	conn, err := grpc.NewClient(r.Internal, grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	defer conn.Close()
	answer, err := metastorev1.NewMetadataQueryServiceClient(conn).QueryMetadata(t.Context(),
		&metastorev1.QueryMetadataRequest{
			TenantId: []string{"anonymous"}, EndTime: time.Now().UnixMilli(), Query: "{}",
		}, grpc.MaxCallRecvMsgSize(64<<20))
	require.NoError(t, err)
	count, size := map[uint32]int{}, map[uint32]uint64{}
	for _, b := range answer.Blocks {
		count[b.CompactionLevel]++
		size[b.CompactionLevel] += b.Size
		bytes += b.Size
	}
	for _, level := range slices.Sorted(maps.Keys(count)) {
		text += fmt.Sprintf("%d of level %d with %d bytes, ", count[level], level, size[level])
	}
	return strings.TrimSuffix(text, ", "), bytes
}

// Start starts it, with what an earlier process left, and waits until it is ready.
func (r *Real) Start(t testing.TB) {
	command := exec.Command(r.binary, r.flags...)
	command.Dir = r.Dir
	r.Process = collectortest.Start(t, command, "Pyroscope")
	require.Eventually(t, func() bool {
		response, err := http.Get(r.URL + "/ready")
		if err != nil {
			return false
		}
		_, _ = io.Copy(io.Discard, response.Body)
		_ = response.Body.Close()
		return response.StatusCode == http.StatusOK
	}, 3*time.Minute, 200*time.Millisecond, fmt.Sprintf("%s is ready", r.binary))
}
