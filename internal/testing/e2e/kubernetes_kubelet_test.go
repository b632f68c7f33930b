// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"io"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/collectortest"
)

const (
	stateFolder = "/var/lib/otelcol-profiles"
	tokenFolder = "/var/run/secrets/kubernetes.io/serviceaccount"
	// imageUser is the user that the pods run as, in the pod's specification and in the image.
	imageUser = 65532
)

// runPod runs a collector's pod as the kubelet does. Environment, configuration, token, volumes and arguments are from
// the API server. The root file system has only these and the binary, and is read-only except for the volumes. The user
// is not root. Only the network differs: it is this machine's, the pod has a loopback address, and the environment
// names it as the address to listen on.
func (c *cluster) runPod(t *testing.T, pod *corev1.Pod, environment map[string]string) *collector {
	t.Helper()
	path, err := collectortest.Binary()
	require.NoError(t, err)
	root := t.TempDir()
	require.NoError(t, os.Chmod(filepath.Dir(root), 0o755))
	container := pod.Spec.Containers[0]
	linkOrCopy(t, path, filepath.Join(root, "otelcol-profiles"))
	writeFile(t, filepath.Join(root, "etc", "hosts"), "127.0.0.1 localhost\n")
	for _, dir := range []string{"proc", "sys", stateFolder} {
		require.NoError(t, os.MkdirAll(filepath.Join(root, dir), 0o755))
	}
	volumes := map[string]corev1.Volume{}
	for _, volume := range pod.Spec.Volumes {
		volumes[volume.Name] = volume
	}
	for _, mount := range container.VolumeMounts {
		c.mount(t, pod, volumes[mount.Name], filepath.Join(root, mount.MountPath))
	}

	asUser := []string{}
	namespaces := []string{"--user", "--map-root-user", "--mount"}
	if os.Geteuid() == 0 {
		asUser = []string{"--userspec=" + strconv.Itoa(imageUser) + ":" + strconv.Itoa(imageUser)}
		namespaces = []string{"--mount"}
		require.NoError(t, os.Chown(filepath.Join(root, stateFolder), imageUser, imageUser))
	}
	arguments := append(namespaces, "sh", "-euc", `
		root=$1; shift
		mount --bind "$root" "$root"
		mount --rbind /proc "$root/proc"
		mount --rbind /sys "$root/sys"
		mount --bind "$root`+stateFolder+`" "$root`+stateFolder+`"
		mount -o remount,bind,ro "$root"
		exec chroot "$@"`, "sh", root)
	arguments = append(arguments, append(asUser, root, "/otelcol-profiles")...)
	run := &collector{
		otlp:    net.JoinHostPort(pod.Status.PodIP, strconv.Itoa(int(container.Ports[0].ContainerPort))),
		command: exec.Command("unshare", append(arguments, container.Args...)...),
	}
	variables := c.environment(t, pod)
	for name, port := range map[string]string{
		"OTLP_GRPC_ENDPOINT": ":4317", "OTLP_HTTP_ENDPOINT": ":4318", "PPROF_ENDPOINT": ":4040",
		"SPLUNK_HEC_ENDPOINT": ":8088",
		"HEALTH_ENDPOINT":     ":13133", "STATUS_ENDPOINT": ":4041", "METRICS_HOST": "",
	} {
		variables[name] = pod.Status.PodIP + port
	}
	maps.Copy(variables, environment)
	for name, value := range variables {
		run.command.Env = append(run.command.Env, name+"="+value)
	}
	run.command.Env = append(run.command.Env, "PATH="+os.Getenv("PATH"))
	run.start(t, pod.Name)
	return run
}

// mount fills the folder of a volume.
func (c *cluster) mount(t *testing.T, pod *corev1.Pod, volume corev1.Volume, folder string) {
	t.Helper()
	switch {
	case volume.ConfigMap != nil:
		content, err := c.admin.CoreV1().ConfigMaps(pod.Namespace).Get(t.Context(), volume.ConfigMap.Name,
			metav1.GetOptions{})
		require.NoError(t, err)
		for name, text := range content.Data {
			writeFile(t, filepath.Join(folder, name), text)
		}
	case volume.EmptyDir != nil:
		require.NoError(t, os.MkdirAll(folder, 0o755))
	case volume.Projected != nil: // admission adds it to pods that ask for a token
		require.Contains(t, folder, tokenFolder)
		certificate, err := os.ReadFile(c.caFile)
		require.NoError(t, err)
		writeFile(t, filepath.Join(folder, "ca.crt"), string(certificate))
		writeFile(t, filepath.Join(folder, "namespace"), pod.Namespace)
		writeFile(t, filepath.Join(folder, "token"), c.token(t, pod))
	default:
		t.Fatalf("the test does not know this kind of volume: %s of %s", volume.Name, pod.Name)
	}
}

// token requests a token of the pod's service account that is bound to the pod.
func (c *cluster) token(t *testing.T, pod *corev1.Pod) string {
	t.Helper()
	lifetime := int64(3600)
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		ExpirationSeconds: &lifetime,
		BoundObjectRef: &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: pod.Name,
			UID: pod.UID},
	}}
	answer, err := c.admin.CoreV1().ServiceAccounts(pod.Namespace).
		CreateToken(t.Context(), pod.Spec.ServiceAccountName, request, metav1.CreateOptions{})
	require.NoError(t, err)
	return answer.Status.Token
}

// environment returns the variables of the pod's container.
func (c *cluster) environment(t *testing.T, pod *corev1.Pod) map[string]string {
	t.Helper()
	variables := map[string]string{"KUBERNETES_SERVICE_HOST": c.host, "KUBERNETES_SERVICE_PORT": c.port}
	container := pod.Spec.Containers[0]
	for _, from := range container.EnvFrom {
		content, err := c.admin.CoreV1().ConfigMaps(pod.Namespace).Get(t.Context(), from.ConfigMapRef.Name,
			metav1.GetOptions{})
		require.NoError(t, err)
		maps.Copy(variables, content.Data)
	}
	fields := map[string]string{
		"metadata.name": pod.Name, "metadata.namespace": pod.Namespace, "metadata.uid": string(pod.UID),
		"spec.nodeName": pod.Spec.NodeName,
	}
	for _, variable := range container.Env {
		switch from := variable.ValueFrom; {
		case from == nil:
			variables[variable.Name] = variable.Value
		case from.FieldRef != nil:
			require.Contains(t, fields, from.FieldRef.FieldPath)
			variables[variable.Name] = fields[from.FieldRef.FieldPath]
		case from.SecretKeyRef != nil:
			secret, err := c.admin.CoreV1().Secrets(pod.Namespace).Get(t.Context(), from.SecretKeyRef.Name, metav1.GetOptions{})
			require.NoError(t, err)
			variables[variable.Name] = string(secret.Data[from.SecretKeyRef.Key])
		case from.ResourceFieldRef != nil:
			require.EqualValues(t, 1, from.ResourceFieldRef.Divisor.Value())
			quantity := map[string]int64{
				"requests.memory": container.Resources.Requests.Memory().Value(),
				"limits.cpu":      container.Resources.Limits.Cpu().Value(),
			}[from.ResourceFieldRef.Resource]
			require.NotZero(t, quantity, from.ResourceFieldRef.Resource)
			variables[variable.Name] = strconv.FormatInt(quantity, 10)
		default:
			t.Fatalf("the test does not know this source of a variable: %s of %s", variable.Name, pod.Name)
		}
	}
	return variables
}

func writeFile(t *testing.T, path, content string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, []byte(content), 0o644))
}

func linkOrCopy(t *testing.T, from, to string) {
	t.Helper()
	if os.Link(from, to) == nil {
		return
	}
	source, err := os.Open(from)
	require.NoError(t, err)
	defer source.Close()
	target, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY, 0o755)
	require.NoError(t, err)
	_, err = io.Copy(target, source)
	require.NoError(t, err)
	require.NoError(t, target.Close())
}
