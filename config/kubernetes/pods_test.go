// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

// TestRestricted checks the rules of the Pod Security Standard "restricted", and stricter ones.
func TestRestricted(t *testing.T) {
	forEach(t, func(t *testing.T, m manifest) {
		for _, w := range m.workloads() {
			if w.samples() {
				continue
			}
			spec := w.template.Spec
			require.True(t, *spec.SecurityContext.RunAsNonRoot)
			require.Positive(t, *spec.SecurityContext.RunAsUser)
			require.Equal(t, corev1.SeccompProfileTypeRuntimeDefault, spec.SecurityContext.SeccompProfile.Type)
			require.False(t, spec.HostNetwork || spec.HostPID || spec.HostIPC)
			for _, volume := range spec.Volumes {
				require.Nil(t, volume.HostPath, volume.Name)
			}
			require.Len(t, spec.Containers, 1)
			security := w.container().SecurityContext
			require.False(t, *security.AllowPrivilegeEscalation)
			require.True(t, *security.ReadOnlyRootFilesystem)
			require.Equal(t, []corev1.Capability{"ALL"}, security.Capabilities.Drop)
			require.Empty(t, security.Capabilities.Add)
			require.Nil(t, security.Privileged)
		}
	})
}

// samples reports whether components/ebpf was applied.
func (w workload) samples() bool {
	return slices.Contains(w.container().Args, "--config=/etc/otelcol-profiles/ebpf.yaml")
}

// documentedCapabilities returns the capabilities in the table of docs/ebpf.md, and the text of that page.
func documentedCapabilities(t *testing.T) (found []corev1.Capability, text string) {
	t.Helper()
	page := profiletest.FileBytes(t, filepath.Join("..", "..", "docs", "ebpf.md"))
	for _, match := range regexp.MustCompile("(?m)^\\| capability `([A-Z_]+)` ").FindAllStringSubmatch(string(page), -1) {
		found = append(found, corev1.Capability(match[1]))
	}
	require.Len(t, found, 10)
	return found, string(page)
}

// TestUnit compares the capabilities of the systemd unit and of the `docker run` line with the table. Both raise the
// limit on locked memory without a capability.
func TestUnit(t *testing.T) {
	documented, page := documentedCapabilities(t)
	unit := profiletest.FileBytes(t, filepath.Join("..", "systemd", "otelcol-profiles.service"))
	var systemd, docker []string
	for _, capability := range documented {
		if capability != "SYS_RESOURCE" && capability != "IPC_LOCK" {
			systemd = append(systemd, "CAP_"+string(capability))
			docker = append(docker, "--cap-add="+string(capability))
		}
	}
	for _, want := range []string{"AmbientCapabilities=" + strings.Join(systemd, " "), "CapabilityBoundingSet=" +
		strings.Join(systemd, " "), "LimitMEMLOCK=infinity"} {
		require.Contains(t, string(unit), "\n"+want+"\n")
	}
	require.Contains(t, page, "--cap-drop=ALL "+strings.Join(docker, " ")+" ")
	require.Contains(t, page, "--ulimit memlock=-1:-1")
}

// TestSampling checks that agents that sample by eBPF have exactly the privileges of docs/ebpf.md.
func TestSampling(t *testing.T) {
	documented, _ := documentedCapabilities(t)
	for _, overlay := range []string{"agent, ebpf", "gateway, ebpf"} {
		m := build(t, overlays[overlay].folder, overlays[overlay].components...)
		for _, w := range m.workloads() {
			require.Equal(t, w.kind == "DaemonSet", w.samples(), w.name)
			if !w.samples() {
				continue
			}
			spec, security := w.template.Spec, w.container().SecurityContext
			require.True(t, spec.HostPID)
			require.False(t, spec.HostNetwork || spec.HostIPC)
			require.Zero(t, *spec.SecurityContext.RunAsUser, "others get no capabilities")
			require.Equal(t, corev1.SeccompProfileTypeRuntimeDefault, spec.SecurityContext.SeccompProfile.Type)
			require.Nil(t, security.Privileged)
			require.False(t, *security.AllowPrivilegeEscalation)
			require.True(t, *security.ReadOnlyRootFilesystem)
			require.Equal(t, []corev1.Capability{"ALL"}, security.Capabilities.Drop)
			require.ElementsMatch(t, documented, security.Capabilities.Add)
			hostPaths := map[string]bool{}
			for _, volume := range spec.Volumes {
				if volume.HostPath != nil {
					hostPaths[volume.HostPath.Path] = true
				}
			}
			require.Equal(t, map[string]bool{"/sys/kernel/tracing": true}, hostPaths)
			for _, mount := range w.container().VolumeMounts {
				require.Equal(t, mount.MountPath != "/var/lib/otelcol-profiles", mount.ReadOnly, mount.Name)
			}
		}
	}
}

// TestPodSecurityLabels checks that the namespace enforces the strictest standard that its pods comply with.
func TestPodSecurityLabels(t *testing.T) {
	forEach(t, func(t *testing.T, m manifest) {
		want := "restricted"
		for _, w := range m.workloads() {
			if w.samples() {
				want = "privileged"
			}
			for _, port := range w.container().Ports {
				if port.HostPort != 0 {
					require.Equal(t, port.ContainerPort, port.HostPort)
					want = "privileged"
				}
			}
		}
		labels := find[*corev1.Namespace](t, m, namespace).Labels
		for _, mode := range []string{"enforce", "audit", "warn"} {
			require.Equal(t, want, labels["pod-security.kubernetes.io/"+mode], mode)
		}
	})
}

// TestMemory checks that Go's limit is the memory requested, four fifths of the container's limit.
func TestMemory(t *testing.T) {
	forEach(t, func(t *testing.T, m manifest) {
		for _, w := range m.workloads() {
			c := w.container()
			requested, allowed := c.Resources.Requests.Memory().Value(), c.Resources.Limits.Memory().Value()
			require.InDelta(t, 0.8, float64(requested)/float64(allowed), 0.03, w.name)
			variable := environment(c)["GOMEMLIMIT"]
			require.NotNil(t, variable.ValueFrom, w.name)
			from := variable.ValueFrom.ResourceFieldRef
			require.Equal(t, "requests.memory", from.Resource)
			require.Equal(t, c.Name, from.ContainerName)
			require.EqualValues(t, 1, from.Divisor.Value(), "GOMEMLIMIT is in bytes")
			require.Positive(t, c.Resources.Requests.Cpu().MilliValue())
		}
	})
}

// TestThreads checks that an agent has as many threads as it may use cores.
func TestThreads(t *testing.T) {
	forEach(t, func(t *testing.T, m manifest) {
		for _, w := range m.workloads() {
			c := w.container()
			variable, set := environment(c)["GOMAXPROCS"]
			require.Equal(t, w.kind == "DaemonSet", set, w.name)
			if set {
				from := variable.ValueFrom.ResourceFieldRef
				require.Equal(t, "limits.cpu", from.Resource)
				require.Equal(t, c.Name, from.ContainerName)
				require.EqualValues(t, 1, from.Divisor.Value(), "GOMAXPROCS is in cores")
				require.False(t, c.Resources.Limits.Cpu().IsZero(), "it would be all of the node's cores")
			}
		}
	})
}

// TestProbes checks that all three probes use the port of the health check.
func TestProbes(t *testing.T) {
	forEach(t, func(t *testing.T, m manifest) {
		for _, w := range m.workloads() {
			c := w.container()
			for _, probe := range []*corev1.Probe{c.StartupProbe, c.ReadinessProbe, c.LivenessProbe} {
				require.Equal(t, intstr.FromString("health"), probe.HTTPGet.Port)
				require.EqualValues(t, 13133, containerPorts(c)["health"])
			}
		}
	})
}

// TestPlacement checks where pods run and how they are replaced.
func TestPlacement(t *testing.T) {
	agent := find[*appsv1.DaemonSet](t, build(t, "overlays/agent"), "otelcol-profiles-agent")
	require.Equal(t, []corev1.Toleration{{Operator: corev1.TolerationOpExists}}, agent.Spec.Template.Spec.Tolerations)
	require.Equal(t, intstr.FromString("10%"), *agent.Spec.UpdateStrategy.RollingUpdate.MaxUnavailable)

	gateway := find[*appsv1.Deployment](t, build(t, "overlays/gateway"), "otelcol-profiles-gateway")
	require.Nil(t, gateway.Spec.Replicas, "the HorizontalPodAutoscaler's, not ours")
	require.Equal(t, intstr.FromInt32(0), *gateway.Spec.Strategy.RollingUpdate.MaxUnavailable)
	spread := gateway.Spec.Template.Spec.TopologySpreadConstraints
	require.Len(t, spread, 2)
	for _, constraint := range spread {
		require.Equal(t, gateway.Spec.Selector.MatchLabels, constraint.LabelSelector.MatchLabels)
	}
}

func environment(c corev1.Container) map[string]corev1.EnvVar {
	variables := map[string]corev1.EnvVar{}
	for _, variable := range c.Env {
		variables[variable.Name] = variable
	}
	return variables
}

func containerPorts(c corev1.Container) map[string]int32 {
	ports := map[string]int32{}
	for _, port := range c.Ports {
		ports[port.Name] = port.ContainerPort
	}
	return ports
}
