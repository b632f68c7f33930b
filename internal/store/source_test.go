// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/size"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/answers"
)

func (s *Store) profiles(service string) []answers.ProfileInfo {
	list, err := s.Catalog(context.Background(), service, &size.Meter{Context: context.Background()})
	if err != nil {
		panic(err)
	}
	return list
}

func (s *Store) services() []answers.ServiceInfo {
	list, err := s.Services(context.Background(), &size.Meter{Context: context.Background()})
	if err != nil {
		panic(err)
	}
	return list
}

// mostPoints is how many a timeline has at most.
const mostPoints = 10_000
