// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/yaml"
)

// selected returns the one workload whose pods a selector selects.
func (m manifest) selected(t *testing.T, selector map[string]string) workload {
	t.Helper()
	var found []workload
	for _, w := range m.workloads() {
		if labels.SelectorFromSet(selector).Matches(labels.Set(w.template.Labels)) {
			found = append(found, w)
		}
	}
	require.Len(t, found, 1, "%v", selector)
	return found[0]
}

// TestNamespaces checks that every namespaced object is in the namespace.
func TestNamespaces(t *testing.T) {
	forEach(t, func(t *testing.T, m manifest) {
		for _, object := range m {
			accessor, err := meta.Accessor(object)
			require.NoError(t, err)
			switch object.(type) {
			case *corev1.Namespace, *rbacv1.ClusterRole, *rbacv1.ClusterRoleBinding, *schedulingv1.PriorityClass:
				require.Empty(t, accessor.GetNamespace(), accessor.GetName())
			default:
				require.Equal(t, namespace, accessor.GetNamespace(), accessor.GetName())
			}
			require.Equal(t, "otelcol-profiles", accessor.GetLabels()["app.kubernetes.io/part-of"], accessor.GetName())
		}
	})
}

// TestReferences checks that the objects to which pods refer by name exist.
func TestReferences(t *testing.T) {
	hashed := regexp.MustCompile(`-[a-z0-9]{10}$`)
	forEach(t, func(t *testing.T, m manifest) {
		for _, w := range m.workloads() {
			require.Equal(t, w.name, m.selected(t, w.selector).name)
			spec := w.template.Spec
			require.False(t, *find[*corev1.ServiceAccount](t, m, spec.ServiceAccountName).AutomountServiceAccountToken)
			require.Equal(t, w.kind == "DaemonSet", *spec.AutomountServiceAccountToken, "only the agent needs a token")
			if spec.PriorityClassName != "" {
				priority := find[*schedulingv1.PriorityClass](t, m, spec.PriorityClassName)
				require.Positive(t, priority.Value)
				require.Equal(t, corev1.PreemptNever, *priority.PreemptionPolicy)
			}
			volumes := map[string]corev1.Volume{}
			for _, volume := range spec.Volumes {
				volumes[volume.Name] = volume
				if volume.ConfigMap != nil {
					require.Regexp(t, hashed, volume.ConfigMap.Name, "so that a change rolls out")
					find[*corev1.ConfigMap](t, m, volume.ConfigMap.Name)
				}
				if volume.Projected != nil { // of components/secure-ports
					name := volume.Projected.Sources[0].ConfigMap.Name
					require.Regexp(t, hashed, name)
					for _, arg := range w.container().Args {
						if file, is := strings.CutPrefix(arg, "--config=/etc/otelcol-profiles-ports/"); is {
							require.Contains(t, find[*corev1.ConfigMap](t, m, name).Data, file)
						}
					}
				}
			}
			if w.kind == "StatefulSet" {
				for _, claim := range find[*appsv1.StatefulSet](t, m, w.name).Spec.VolumeClaimTemplates {
					volumes[claim.Name] = corev1.Volume{}
				}
			}
			for _, mount := range w.container().VolumeMounts {
				require.Contains(t, volumes, mount.Name)
			}
			for _, from := range w.container().EnvFrom {
				require.Regexp(t, hashed, from.ConfigMapRef.Name)
				find[*corev1.ConfigMap](t, m, from.ConfigMapRef.Name)
			}
		}
	})
}

// TestImage checks that the overlays name the image of this version.
func TestImage(t *testing.T) {
	content, err := os.ReadFile(filepath.Join("..", "..", "builder-config.yaml"))
	require.NoError(t, err)
	var builder struct{ Dist struct{ Version string } }
	require.NoError(t, yaml.Unmarshal(content, &builder))
	for _, overlay := range []string{"overlays/agent", "overlays/gateway", "overlays/page"} {
		for _, w := range build(t, overlay).workloads() {
			require.Equal(t, "otelcol-profiles:"+builder.Dist.Version, w.container().Image)
		}
	}
}

// TestServices checks that each port leads to a port of the pods, and that agents are reachable only on their node.
func TestServices(t *testing.T) {
	forEach(t, func(t *testing.T, m manifest) {
		for _, service := range all[*corev1.Service](m) {
			w := m.selected(t, service.Spec.Selector)
			for _, port := range service.Spec.Ports {
				require.Equal(t, port.Port, containerPorts(w.container())[port.TargetPort.StrVal], "%s of %s", port.Name,
					service.Name)
			}
			if w.kind == "DaemonSet" {
				require.Equal(t, corev1.ServiceInternalTrafficPolicyLocal, *service.Spec.InternalTrafficPolicy)
			}
		}
	})
}

// TestNetworkPolicies checks that exactly the ports of a Service and the metrics are open.
func TestNetworkPolicies(t *testing.T) {
	forEach(t, func(t *testing.T, m manifest) {
		policies := all[*networkingv1.NetworkPolicy](m)
		require.Len(t, policies, len(m.workloads()))
		for _, policy := range policies {
			w := m.selected(t, policy.Spec.PodSelector.MatchLabels)
			want := map[string]bool{"metrics": true}
			for _, port := range find[*corev1.Service](t, m, w.name).Spec.Ports {
				want[port.TargetPort.StrVal] = true
			}
			got := map[string]bool{}
			for _, rule := range policy.Spec.Ingress {
				for _, port := range rule.Ports {
					require.Contains(t, containerPorts(w.container()), port.Port.StrVal)
					got[port.Port.StrVal] = true
				}
				for _, peer := range rule.From {
					if peer.PodSelector != nil {
						require.Equal(t, "otelcol-profiles-agent", m.selected(t, peer.PodSelector.MatchLabels).name)
					}
				}
			}
			require.Equal(t, want, got, policy.Name)
		}
	})
}

// TestRoles checks that the permissions are those that discovery and k8s_attributes need; `make e2e-kubernetes` shows
// that they suffice.
func TestRoles(t *testing.T) {
	forEach(t, func(t *testing.T, m manifest) {
		roles, bindings := all[*rbacv1.ClusterRole](m), all[*rbacv1.ClusterRoleBinding](m)
		require.Len(t, roles, 1)
		require.Len(t, bindings, 1)
		require.Empty(t, all[*rbacv1.Role](m))
		require.Empty(t, all[*rbacv1.RoleBinding](m))
		require.Equal(t,
			[]rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"list", "watch"}}},
			roles[0].Rules)
		require.Equal(t, roles[0].Name, bindings[0].RoleRef.Name)
		agent := all[*appsv1.DaemonSet](m)[0]
		require.Equal(t, []rbacv1.Subject{{
			Kind: "ServiceAccount", Name: agent.Spec.Template.Spec.ServiceAccountName, Namespace: namespace,
		}}, bindings[0].Subjects)
	})
}

// TestScaling checks the autoscaler and the disruption budget of the gateways.
func TestScaling(t *testing.T) {
	forEach(t, func(t *testing.T, m manifest) {
		var gateways []workload
		for _, w := range m.workloads() {
			if strings.HasSuffix(w.name, "-gateway") {
				gateways = append(gateways, w)
			}
		}
		scalers, budgets := all[*autoscalingv2.HorizontalPodAutoscaler](m), all[*policyv1.PodDisruptionBudget](m)
		require.Len(t, scalers, len(gateways))
		require.Len(t, budgets, len(gateways))
		for _, scaler := range scalers {
			target := scaler.Spec.ScaleTargetRef
			gateway := gateways[0]
			require.Equal(t, "apps/v1 "+gateway.kind+" "+gateway.name, target.APIVersion+" "+target.Kind+" "+target.Name)
			require.Greater(t, *scaler.Spec.MinReplicas, int32(1), "or the budget and the spread mean nothing")
			for _, metric := range scaler.Spec.Metrics {
				require.Contains(t, gateway.container().Resources.Requests, metric.Resource.Name,
					"a percentage of what is requested")
			}
		}
		for _, budget := range budgets {
			require.Equal(t, gateways[0].name, m.selected(t, budget.Spec.Selector.MatchLabels).name)
		}
	})
}
