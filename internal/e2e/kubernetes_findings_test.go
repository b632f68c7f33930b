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
	"go.opentelemetry.io/collector/pdata/pprofile"
)

// waitForTargets waits until the agent's page lists these pods, no others, and all have been scraped.
func (c *collector) waitForTargets(t *testing.T, pods ...string) {
	t.Helper()
	slices.Sort(pods)
	host, _, err := net.SplitHostPort(c.endpoint)
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

// targetStates reads the state of each pod on the page.
func targetStates(page string) (map[string]string, error) {
	response, err := client.Get(page)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	var status struct {
		Jobs []struct {
			Targets []struct {
				State    string
				Resource map[string]any
			}
		}
	}
	if err := json.NewDecoder(response.Body).Decode(&status); err != nil {
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

// each calls see for every profile of a service that arrived.
func (b *backend) each(service string, see func(pprofile.ProfilesDictionary, pprofile.Profile)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, pd := range b.received {
		for _, rp := range pd.ResourceProfiles().All() {
			if name, _ := rp.Resource().Attributes().Get("service.name"); name.AsString() != service {
				continue
			}
			for _, sp := range rp.ScopeProfiles().All() {
				for _, p := range sp.Profiles().All() {
					see(pd.Dictionary(), p)
				}
			}
		}
	}
}

// types gives the sample types of a service.
func (b *backend) types(service string) map[string]bool {
	types := map[string]bool{}
	b.each(service, func(d pprofile.ProfilesDictionary, p pprofile.Profile) {
		types[d.StringTable().At(int(p.SampleType().TypeStrindex()))] = true
	})
	return types
}

// stacks gives the names of all functions in a service's samples of a type.
func (b *backend) stacks(service, sampleType string) map[string]bool {
	names := map[string]bool{}
	b.each(service, func(d pprofile.ProfilesDictionary, p pprofile.Profile) {
		text := func(i int32) string { return d.StringTable().At(int(i)) }
		if text(p.SampleType().TypeStrindex()) != sampleType {
			return
		}
		for _, s := range p.Samples().All() {
			for _, l := range d.StackTable().At(int(s.StackIndex())).LocationIndices().All() {
				for _, line := range d.LocationTable().At(int(l)).Lines().All() {
					names[text(d.FunctionTable().At(int(line.FunctionIndex())).NameStrindex())] = true
				}
			}
		}
	})
	return names
}

// services gives the attributes of the resources that arrived, by service.name.
func (b *backend) services() map[string]map[string]any {
	b.mu.Lock()
	defer b.mu.Unlock()
	services := map[string]map[string]any{}
	for _, pd := range b.received {
		for _, rp := range pd.ResourceProfiles().All() {
			name, _ := rp.Resource().Attributes().Get("service.name")
			if services[name.AsString()] == nil {
				services[name.AsString()] = map[string]any{}
			}
			maps.Copy(services[name.AsString()], rp.Resource().Attributes().AsRaw())
		}
	}
	return services
}

func (b *backend) service(name string) map[string]any { return b.services()[name] }

// requireNoErrors looks for what a healthy collector does not log.
func (c *collector) requireNoErrors(t *testing.T) {
	t.Helper()
	for _, word := range []string{"\terror\t", "\twarn\t", "forbidden"} {
		require.NotContains(t, c.Log.String(), word)
	}
}
