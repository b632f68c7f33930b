// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/config/confighttp"
	"go.opentelemetry.io/collector/confmap"
)

type section struct {
	Server confighttp.ServerConfig `mapstructure:",squash"`
	Token  string                  `mapstructure:"token"`
}

func (s *section) Unmarshal(conf *confmap.Conf) error { return Unmarshal(conf, s) }

func TestUnmarshal(t *testing.T) {
	read := func(raw map[string]any) (section, error) {
		s := section{Server: confighttp.NewDefaultServerConfig()}
		return s, confmap.NewFromStringMap(raw).Unmarshal(&s)
	}
	s, err := read(map[string]any{"endpoint": "localhost:1", "token": "t"})
	require.NoError(t, err)
	assert.Equal(t, "localhost:1", s.Server.NetAddr.Endpoint)
	assert.Equal(t, "t", s.Token)
	_, err = read(map[string]any{"tokne": "t", "endpont": "x", "token": "t"})
	assert.ErrorContains(t, err, "`endpont` is not a key of this section\n`tokne` is not a key of this section")
}

// The reason for this package: when this fails, it can go.
func TestConfigHTTPIgnoresUnknownKeys(t *testing.T) {
	section := struct {
		HTTP confighttp.ServerConfig `mapstructure:",squash"`
	}{}
	assert.NoError(t, confmap.NewFromStringMap(map[string]any{"endpont": "localhost:1"}).Unmarshal(&section))
}
