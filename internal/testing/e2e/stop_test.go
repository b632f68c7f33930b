// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile/pprofileotlp"

	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/collectortest"
)

// TestStopWhileStarting sends signals soon after the start of the process. SIGTERM and SIGINT end it in order or,
// before Go has reached main, by the signal itself and without output. After SIGHUP it goes on.
func TestStopWhileStarting(t *testing.T) {
	t.Parallel()
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
			command.Env = append(os.Environ(), "PPROF_ENDPOINT=localhost:0", "PAGE_ENDPOINT=localhost:0", "METRICS_PORT=0",
				"PROFILES_OUT="+t.TempDir())
			p := collectortest.Start(t, command, "the collector")
			time.Sleep(after * time.Millisecond)
			require.NoError(t, command.Process.Signal(signal))
			if signal == syscall.SIGHUP {
				require.Eventually(t, func() bool {
					select {
					case <-p.Exited: // on a busy machine main may not have been reached
						return true
					default:
						return strings.Contains(p.Log.String(), "Everything is ready")
					}
				}, startTimeout, 10*time.Millisecond)
				_ = p.Signal(syscall.SIGTERM) // an error means that it has ended
			}
			requireExit(t, p)
			if p.ExitErr != nil {
				require.Equal(t, "signal: "+signal.String(), p.ExitErr.Error())
				require.Empty(t, p.Log.String())
				require.Less(t, after, time.Duration(1000), "main is reached by then")
			}
		}
	}
}

// requireExit waits until a process has ended.
func requireExit(t *testing.T, p *collectortest.Process) {
	t.Helper()
	select {
	case <-p.Exited:
	case <-time.After(startTimeout):
		t.Fatal("still running")
	}
}

// stuckConfig has components of the Collector, whose senders wait for a full queue.
const stuckConfig = `
receivers:
  otlp:
    protocols:
      grpc:
        endpoint: ${env:OTLP_GRPC_ENDPOINT}
processors:
  dictionary_dedup:
    timeout: 0
exporters:
  otlp_grpc:
    endpoint: ${env:BACKEND_ENDPOINT}
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

// startStuck starts a collector whose backend is away or, if silent, never answers. Clients without a deadline wait for
// room in its queue.
func startStuck(t *testing.T, processors string, silent bool) *collector {
	t.Helper()
	backend := freeAddress(t)
	if silent {
		listener, err := net.Listen("tcp", backend) // accepts connections, and never answers
		require.NoError(t, err)
		t.Cleanup(func() { _ = listener.Close() })
	}
	c := launch(t, newFile(t, "stuck.yaml", []byte(stuckConfig)), "BACKEND_ENDPOINT="+backend, "PROCESSORS="+processors,
		"OTELCOL_PROFILES_SHUTDOWN_TIMEOUT=2s")
	client, from := dial(t, c.otlp), newAgents(t)
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	waiting := make(chan struct{}, 8)
	for i := range 8 {
		go func() {
			waiting <- struct{}{}
			pd, _ := from.message(i)
			_, _ = client.Export(ctx, pprofileotlp.NewExportRequestFromProfiles(pd))
			<-waiting
		}()
	}
	require.Eventually(t, func() bool { return len(waiting) >= 4 }, startTimeout, time.Millisecond)
	time.Sleep(300 * time.Millisecond)
	require.GreaterOrEqual(t, len(waiting), 4, "senders wait")
	return c
}

// TestStopWhileStuck stops collectors in which components of the Collector would wait forever. What waited in memory is
// lost, which the exit status reports.
func TestStopWhileStuck(t *testing.T) {
	t.Parallel()
	for name, silent := range map[string]bool{"backend away": false, "backend silent": true} {
		for _, processors := range []string{"[]", "[dictionary_dedup]"} {
			t.Run(name+" "+processors, func(t *testing.T) {
				c := startStuck(t, processors, silent)
				require.NoError(t, c.command.Process.Signal(syscall.SIGTERM))
				requireExit(t, c.Process)
				require.Error(t, c.ExitErr, "data was lost")
				require.Contains(t, c.Log.String(), "did not stop in time")
				require.Contains(t, c.Log.String(), "receiver otlp")
			})
		}
	}
}

// TestReloadWhileStuck reloads the configuration of such a collector: the new service starts.
func TestReloadWhileStuck(t *testing.T) {
	c := startStuck(t, "[dictionary_dedup]", false)
	require.NoError(t, c.command.Process.Signal(syscall.SIGHUP))
	require.Eventually(t, func() bool { return strings.Count(c.Log.String(), "Everything is ready") == 2 },
		startTimeout, 50*time.Millisecond)
	require.NoError(t, c.command.Process.Signal(syscall.SIGTERM))
	requireExit(t, c.Process)
}
