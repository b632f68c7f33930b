// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// waitForTargets waits until the agent's page lists exactly these pods, and all have been scraped.
func (c *collector) waitForTargets(t *testing.T, pods ...string) {
	t.Helper()
	slices.Sort(pods)
	host, _, err := net.SplitHostPort(c.otlp)
	require.NoError(t, err)
	var listed map[string]string
	require.Eventually(t, func() bool {
		listed, err = targetStates("http://" + host + ":4041/targets?format=json")
		if err != nil {
			return false
		}
		for _, state := range listed {
			if state != "up" {
				return false
			}
		}
		return slices.Equal(pods, slices.Sorted(maps.Keys(listed)))
	}, scrapes, 200*time.Millisecond, "want %v", pods)
	require.NoError(t, err)
}

// targetStates returns the state of each pod on a page of targets.
func targetStates(page string) (map[string]string, error) {
	body, err := get(page)
	if err != nil {
		return nil, err
	}
	var status struct {
		Jobs []struct {
			Targets []struct {
				State    string
				Resource map[string]any
			}
		}
	}
	if err := json.Unmarshal([]byte(body), &status); err != nil {
		return nil, err
	}
	states := map[string]string{}
	for _, job := range status.Jobs {
		for _, target := range job.Targets {
			pod, _ := target.Resource["k8s.pod.name"].(string)
			if states[pod] != "" {
				return nil, fmt.Errorf("pod %q is listed twice", pod)
			}
			states[pod] = target.State
		}
	}
	return states, nil
}

// hasFunction reports whether a function is in the stacks of a service's samples of a type.
func (b *backend) hasFunction(service, sampleType, function string) bool {
	for p := range b.profiles(service) {
		if p.sampleType() != sampleType {
			continue
		}
		for _, sample := range p.Samples().All() {
			if slices.Contains(p.functions(sample), function) {
				return true
			}
		}
	}
	return false
}

// requireNoErrors checks that the collector has logged no errors and warnings.
func (c *collector) requireNoErrors(t *testing.T) {
	t.Helper()
	for _, word := range []string{"\terror\t", "\twarn\t", "forbidden"} {
		require.NotContains(t, c.Log.String(), word)
	}
}
