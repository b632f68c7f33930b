// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile/pprofileotlp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/otelcol-profiles/otelcol-profiles/internal/collectortest"
)

// TestStopWhileStarting sends signals in the first moments of the process. SIGTERM and SIGINT end it in order, or, before
// Go has reached main, by the signal itself and without a word. SIGHUP leaves it alone.
func TestStopWhileStarting(t *testing.T) {
	path, err := collectortest.Binary()
	require.NoError(t, err)
	for signal, moments := range map[syscall.Signal][]time.Duration{
		syscall.SIGTERM: {0, 10, 30, 50, 100, 200, 300, 500, 1000},
		syscall.SIGINT:  {0, 50, 300},
		syscall.SIGHUP:  {100, 300, 1000},
	} {
		for _, after := range moments {
			command := exec.Command(path, "--config", "config/quickstart.yaml")
			command.Dir = repository
			command.Env = append(os.Environ(), "PPROF_ENDPOINT=localhost:0", "PAGE_ENDPOINT=localhost:0", "METRICS_PORT=0", "PROFILES_OUT="+t.TempDir())
			p := collectortest.Start(t, command, "the collector")
			time.Sleep(after * time.Millisecond)
			require.NoError(t, command.Process.Signal(signal))
			if signal == syscall.SIGHUP {
				ready := func() bool { return strings.Contains(p.Log.String(), "Everything is ready") }
				ended := func() bool {
					select {
					case <-p.Exited:
						return true
					default:
						return false
					}
				}
				require.Eventually(t, func() bool { return ready() || ended() }, startTimeout, 10*time.Millisecond)
				if ended() { // on a machine that is busy main may not have been reached
					require.Equal(t, "signal: "+signal.String(), p.ExitErr.Error())
					require.Less(t, after, time.Duration(1000), "main is reached by then")
					continue
				}
				p.Terminate(t)
				continue
			}
			select {
			case <-p.Exited:
			case <-time.After(startTimeout):
				t.Fatalf("%s after %d ms: still running", signal, after)
			}
			if p.ExitErr != nil {
				require.Equal(t, "signal: "+signal.String(), p.ExitErr.Error())
				require.Empty(t, p.Log.String())
				require.Less(t, after, time.Duration(1000), "main is reached by then")
			}
		}
	}
}

// stuckConfig has a receiver and a processor of the Collector's own, whose senders wait for a queue that is full.
const stuckConfig = `
receivers:
  otlp:
    protocols:
      grpc:
        endpoint: ${env:ENDPOINT}
processors:
  dictionary_dedup:
    timeout: 0
exporters:
  otlp_grpc:
    endpoint: ${env:BACKEND}
    tls: {insecure: true}
    timeout: 0
    retry_on_failure: {max_elapsed_time: 0}
    sending_queue:
      queue_size: 1
      block_on_overflow: true
      num_consumers: 1
service:
  telemetry: {metrics: {level: none}}
  pipelines:
    profiles:
      receivers: [otlp]
      processors: ${env:PROCESSORS}
      exporters: [otlp_grpc]
`

// startStuck starts a collector whose backend is away or never answers, and clients without a deadline that wait for
// room in its queue.
func startStuck(t *testing.T, processors string, silent bool) *collector {
	t.Helper()
	backend := freeAddress(t)
	if silent {
		listener, err := net.Listen("tcp", backend) // connects, and says nothing
		require.NoError(t, err)
		t.Cleanup(func() { _ = listener.Close() })
	}
	config := filepath.Join(t.TempDir(), "stuck.yaml")
	require.NoError(t, os.WriteFile(config, []byte(stuckConfig), 0o600))
	endpoint := freeAddress(t)
	c := launchWith(t, endpoint, "", config, nil, "ENDPOINT="+endpoint, "BACKEND="+backend, "PROCESSORS="+processors,
		"OTELCOL_PROFILES_SHUTDOWN_TIMEOUT=2s")
	connection, err := grpc.NewClient(endpoint, grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	t.Cleanup(func() { _ = connection.Close() })
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	waiting := make(chan struct{}, 8)
	for i := range 8 {
		go func() {
			waiting <- struct{}{}
			_, _ = pprofileotlp.NewGRPCClient(connection).Export(ctx, pprofileotlp.NewExportRequestFromProfiles(message(i)))
			<-waiting
		}()
	}
	require.Eventually(t, func() bool { return len(waiting) >= 4 }, startTimeout, time.Millisecond)
	time.Sleep(300 * time.Millisecond)
	require.GreaterOrEqual(t, len(waiting), 4, "senders wait")
	return c
}

// TestStopWhileStuck ends collectors whose stock components would wait for ever. What waited in memory is lost, so that the
// exit status says so.
func TestStopWhileStuck(t *testing.T) {
	for name, silent := range map[string]bool{"backend away": false, "backend silent": true} {
		for _, processors := range []string{"[]", "[dictionary_dedup]"} {
			t.Run(name+" "+processors, func(t *testing.T) {
				c := startStuck(t, processors, silent)
				require.NoError(t, c.command.Process.Signal(syscall.SIGTERM))
				select {
				case <-c.Exited:
				case <-time.After(startTimeout):
					t.Fatal("still running")
				}
				require.Error(t, c.ExitErr, "data was lost")
				require.Contains(t, c.Log.String(), "did not stop in time")
				require.Contains(t, c.Log.String(), "receiver otlp")
				require.Contains(t, c.Log.String(), "GracefulStop")
			})
		}
	}
}

// TestReloadWhileStuck reloads the configuration in the same state: the new service starts.
func TestReloadWhileStuck(t *testing.T) {
	c := startStuck(t, "[dictionary_dedup]", false)
	require.NoError(t, c.command.Process.Signal(syscall.SIGHUP))
	require.Eventually(t, func() bool { return strings.Count(c.Log.String(), "Everything is ready") == 2 },
		startTimeout, 50*time.Millisecond)
	require.NoError(t, c.command.Process.Signal(syscall.SIGTERM))
	select {
	case <-c.Exited:
	case <-time.After(startTimeout):
		t.Fatal("still running")
	}
}
