// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// configuration returns the configuration file that the pods of a workload see.
func (m manifest) configuration(t *testing.T, w workload) string {
	t.Helper()
	for _, volume := range w.template.Spec.Volumes {
		if volume.ConfigMap != nil {
			return find[*corev1.ConfigMap](t, m, volume.ConfigMap.Name).Data["config.yaml"]
		}
	}
	t.Fatalf("%s has no configuration", w.name)
	return ""
}

// TestPorts checks that the collectors listen at the container's ports, including health check and metrics.
func TestPorts(t *testing.T) {
	forEach(t, func(t *testing.T, m manifest) {
		for _, w := range m.workloads() {
			text := m.configuration(t, w)
			listening := map[string]bool{}
			for _, match := range regexp.MustCompile(`(?:endpoint|port): \$\{env:[A-Z_]+:-:?(\d+)\}`).
				FindAllStringSubmatch(text, -1) {
				listening[match[1]] = true
			}
			want := map[string]bool{}
			for _, port := range w.container().Ports {
				want[strconv.Itoa(int(port.ContainerPort))] = true
			}
			require.Equal(t, want, listening, w.name)
			require.Contains(t, text, "${env:METRICS_HOST:-0.0.0.0}")
		}
	})
}

// TestVariables checks that every variable of a configuration without a default is one that its pods have.
func TestVariables(t *testing.T) {
	forEach(t, func(t *testing.T, m manifest) {
		for _, w := range m.workloads() {
			known := map[string]bool{}
			for name := range environment(w.container()) {
				known[name] = true
			}
			for _, from := range w.container().EnvFrom {
				for name := range find[*corev1.ConfigMap](t, m, from.ConfigMapRef.Name).Data {
					known[name] = true
				}
			}
			text := m.configuration(t, w) + strings.Join(w.container().Args, "\n")
			for _, match := range regexp.MustCompile(`\$\{env:([A-Z0-9_]+)\}`).FindAllStringSubmatch(text, -1) {
				require.True(t, known[match[1]], "%s of %s is not set", match[1], w.name)
			}
		}
	})
}

// TestAgentReceivesWithinTheBudget checks that the agent has no receiver that does not know the budget of the process.
func TestAgentReceivesWithinTheBudget(t *testing.T) {
	forEach(t, func(t *testing.T, m manifest) {
		for _, w := range m.workloads() {
			if !strings.HasSuffix(w.name, "agent") {
				continue
			}
			var config struct {
				Receivers map[string]any
				Service   struct {
					Pipelines map[string]struct{ Receivers []string }
				}
			}
			require.NoError(t, yaml.Unmarshal([]byte(m.configuration(t, w)), &config))
			for name := range config.Receivers {
				kind, _, _ := strings.Cut(name, "/")
				require.Contains(t, []string{"pprof", "otlp_profiles", "splunk_profiling", "profiling"}, kind)
			}
			require.Contains(t, config.Service.Pipelines["logs"].Receivers, "otlp_profiles")
			require.Contains(t, config.Service.Pipelines["profiles"].Receivers, "otlp_profiles")
		}
	})
}

// TestQueuesAreSynced checks that a node without power leaves no torn queue, with which its pod would not start again.
func TestQueuesAreSynced(t *testing.T) {
	forEach(t, func(t *testing.T, m manifest) {
		for _, configMap := range all[*corev1.ConfigMap](m) {
			for name, text := range configMap.Data {
				var config struct {
					Extensions map[string]struct{ Fsync bool }
				}
				if strings.Contains(text, "\n  file_storage:\n") {
					require.NoError(t, yaml.Unmarshal([]byte(text), &config))
					require.True(t, config.Extensions["file_storage"].Fsync, "%s of %s", name, configMap.Name)
				}
			}
		}
	})
}

// TestBackends checks where agents and gateways send.
func TestBackends(t *testing.T) {
	for name, want := range map[string]map[string]string{
		"overlays/agent": {"otelcol-profiles-agent": "backend.observability:4317"},
		"overlays/gateway": {"otelcol-profiles-agent": "otelcol-profiles-gateway:4317",
			"otelcol-profiles-gateway": "backend.observability:4317"},
		"overlays/page": {"otelcol-profiles-agent": "otelcol-profiles-page:4317"},
	} {
		m := build(t, name)
		got := map[string]string{}
		for _, w := range m.workloads() {
			if len(w.container().EnvFrom) == 0 {
				continue // the page sends nothing
			}
			got[w.name] = find[*corev1.ConfigMap](t, m, w.container().EnvFrom[0].ConfigMapRef.Name).Data["BACKEND_ENDPOINT"]
		}
		require.Equal(t, want, got)
	}
	// The agents send to a Service that exists.
	for _, name := range []string{"gateway", "page"} {
		service := find[*corev1.Service](t, build(t, "overlays/"+name), "otelcol-profiles-"+name)
		require.EqualValues(t, 4317, service.Spec.Ports[0].Port)
	}
}

// TestToken checks that only pods that send to the backend have the token.
func TestToken(t *testing.T) {
	for folder, want := range map[string]string{
		"overlays/agent": "otelcol-profiles-agent", "overlays/gateway": "otelcol-profiles-gateway",
	} {
		for _, w := range build(t, folder, "components/backend-token").workloads() {
			variable, has := environment(w.container())["BACKEND_TOKEN"]
			require.Equal(t, w.name == want, has, w.name)
			require.Equal(t, has, len(w.container().Args) == 2, w.name)
			if has {
				require.Equal(t, "otelcol-profiles-backend", variable.ValueFrom.SecretKeyRef.Name)
			}
		}
	}
}

// TestLimits checks that the limits of memory and disk are within those of the pod.
func TestLimits(t *testing.T) {
	m := build(t, "overlays/gateway")
	for _, w := range m.workloads() {
		var config struct {
			Receivers struct {
				PProf struct {
					Limits struct {
						MaxProfileBytes int64 `json:"max_profile_bytes"`
					}
				}
			}
			Processors struct {
				MemoryLimiter struct {
					LimitPercentage      int64 `json:"limit_percentage"`
					SpikeLimitPercentage int64 `json:"spike_limit_percentage"`
				} `json:"memory_limiter"`
			}
			Exporters struct {
				OTLP struct {
					SendingQueue struct {
						QueueSize int64 `json:"queue_size"`
						Storage   string
					} `json:"sending_queue"`
				} `json:"otlp_grpc"`
			}
		}
		require.NoError(t, yaml.Unmarshal([]byte(m.configuration(t, w)), &config))
		resources := w.container().Resources
		require.Less(t, 40*config.Receivers.PProf.Limits.MaxProfileBytes, resources.Requests.Memory().Value(),
			"a costly profile fits into memory")
		limiter := config.Processors.MemoryLimiter
		percent := resources.Limits.Memory().Value() / 100
		require.Less(t, limiter.LimitPercentage*percent, resources.Requests.Memory().Value(),
			"the limiter acts before Go's garbage collector has to work hard")
		lowerMark := (limiter.LimitPercentage - limiter.SpikeLimitPercentage) * percent
		queue := config.Exporters.OTLP.SendingQueue
		require.Positive(t, queue.QueueSize)
		if queue.Storage == "" {
			require.Less(t, 5*queue.QueueSize, lowerMark*3/4, "decoded, profiles take five times their encoded size")
			continue
		}
		for _, volume := range w.template.Spec.Volumes {
			if volume.EmptyDir != nil {
				// The file grows beyond its content, and is copied while it is compacted.
				require.Less(t, 3*queue.QueueSize, volume.EmptyDir.SizeLimit.Value())
				require.Greater(t, resources.Limits.StorageEphemeral().Value(), volume.EmptyDir.SizeLimit.Value())
			}
		}
	}
}

// TestVolumes checks that each gateway's queue is on a volume that is large enough and is kept.
func TestVolumes(t *testing.T) {
	m := build(t, "overlays/gateway", "components/gateway-volumes")
	require.Empty(t, all[*appsv1.Deployment](m))
	gateway := find[*appsv1.StatefulSet](t, m, "otelcol-profiles-gateway")
	require.Len(t, gateway.Spec.VolumeClaimTemplates, 1)
	claim := gateway.Spec.VolumeClaimTemplates[0]
	retention := gateway.Spec.PersistentVolumeClaimRetentionPolicy
	require.Equal(t, appsv1.RetainPersistentVolumeClaimRetentionPolicyType, retention.WhenScaled)
	require.Equal(t, appsv1.RetainPersistentVolumeClaimRetentionPolicyType, retention.WhenDeleted)
	pod := gateway.Spec.Template.Spec
	require.EqualValues(t, 65532, *pod.SecurityContext.FSGroup)
	container := pod.Containers[0]
	mounts := map[string]string{}
	for _, mount := range container.VolumeMounts {
		require.Equal(t, mount.MountPath == "/etc/otelcol-profiles", mount.ReadOnly)
		mounts[mount.Name] = mount.MountPath
	}
	require.Equal(t, "/var/lib/otelcol-profiles", mounts[claim.Name])
	require.Contains(t, container.Args, "--config="+mounts["config"]+"/queue.yaml")
	find[*corev1.Service](t, m, gateway.Spec.ServiceName)
	for _, constraint := range pod.TopologySpreadConstraints {
		require.Equal(t, []string{"controller-revision-hash"}, constraint.MatchLabelKeys, "the label of a StatefulSet's pods")
	}

	var config struct {
		Processors map[string]struct{ Acknowledge string }
		Exporters  struct {
			OTLP struct {
				SendingQueue struct {
					QueueSize int64 `json:"queue_size"`
					Storage   string
				} `json:"sending_queue"`
			} `json:"otlp_grpc"`
		}
		Extensions map[string]struct{ Directory string }
		Service    struct{ Extensions []string }
	}
	text := find[*corev1.ConfigMap](t, m, pod.Volumes[0].ConfigMap.Name).Data["queue.yaml"]
	require.NoError(t, yaml.Unmarshal([]byte(text), &config))
	require.Equal(t, "delivered", config.Processors["dictionary_dedup"].Acknowledge)
	queue := config.Exporters.OTLP.SendingQueue
	require.Contains(t, config.Extensions[queue.Storage].Directory, mounts[claim.Name])
	// It replaces the list of the first configuration.
	require.Equal(t, []string{queue.Storage, "health_check"}, config.Service.Extensions)
	require.LessOrEqual(t, 3*queue.QueueSize, claim.Spec.Resources.Requests.Storage().Value())

	scaler := find[*autoscalingv2.HorizontalPodAutoscaler](t, m, gateway.Name)
	require.Equal(t, autoscalingv2.DisabledPolicySelect, *scaler.Spec.Behavior.ScaleDown.SelectPolicy,
		"a gateway that is scaled down would keep its queue unsent")
}

// TestPage checks that the store of the page is on a volume that is kept and is twice as large as its blocks.
func TestPage(t *testing.T) {
	m := build(t, "overlays/page")
	page := find[*appsv1.StatefulSet](t, m, "otelcol-profiles-page")
	require.EqualValues(t, 1, *page.Spec.Replicas, "a store has one writer")
	require.Equal(t, appsv1.RetainPersistentVolumeClaimRetentionPolicyType,
		page.Spec.PersistentVolumeClaimRetentionPolicy.WhenDeleted)
	claim := page.Spec.VolumeClaimTemplates[0]
	mount := page.Spec.Template.Spec.Containers[0].VolumeMounts[1]
	require.Equal(t, claim.Name, mount.Name)
	text := m.configuration(t, m.selected(t, page.Spec.Selector.MatchLabels))
	require.Contains(t, text, "directory: ${env:STORE_DIRECTORY:-"+mount.MountPath+"}/store\n")
	require.Contains(t, text, "endpoint: ${env:PAGE_ENDPOINT:-localhost:4042}\n", "only `kubectl port-forward` reaches it")
	maxBytes := regexp.MustCompile(`max_bytes: \$\{env:STORE_MAX_BYTES:-(\d+)\}`).FindStringSubmatch(text)
	require.Equal(t, strconv.FormatInt(claim.Spec.Resources.Requests.Storage().Value()/2, 10), maxBytes[1])
}

// TestRelabelRules checks that the agent's rules are those of the receiver's tests.
func TestRelabelRules(t *testing.T) {
	shipped, err := os.ReadFile("base/relabel.yaml")
	require.NoError(t, err)
	tested, err := os.ReadFile(filepath.Join("..", "..", "receiver", "pprofreceiver", "testdata",
		"kubernetes-relabel.yaml"))
	require.NoError(t, err)
	require.Equal(t, string(tested), string(shipped))
	m := build(t, "overlays/agent")
	agent := m.workloads()[0]
	require.Contains(t, m.configuration(t, agent), "${file:${env:CONFIG_FOLDER:-/etc/otelcol-profiles}/relabel.yaml}")
	maps := slices.Collect(maps.Keys(find[*corev1.ConfigMap](t, m, agent.template.Spec.Volumes[0].ConfigMap.Name).Data))
	require.Contains(t, maps, "relabel.yaml")
	require.Equal(t, "/etc/otelcol-profiles", agent.container().VolumeMounts[0].MountPath)
}
