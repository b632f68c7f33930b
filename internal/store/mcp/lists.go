// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/otelcol-profiles/otelcol-profiles/internal/store/answers"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/model"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/query"
)

type listServicesIn struct {
	Contains string `json:"contains,omitempty" jsonschema:"only services whose name contains this text"`
	Limit    int    `json:"limit,omitempty" jsonschema:"how many, 50 by default, at most 500"`
}

func listServices(c *call, in *listServicesIn) error {
	limit := c.within("limit", in.Limit, 50, 500)
	list, err := c.Store.Services(c.ctx, c.meter)
	if err := cmp.Or(c.params.Check(), err); err != nil {
		return err
	}
	list = slices.DeleteFunc(list, func(s answers.ServiceInfo) bool {
		return !strings.Contains(strings.ToLower(s.Service), strings.ToLower(in.Contains))
	})
	c.linef("%d services; now is %s", len(list), formatTime(c.now.UnixNano()))
	c.row("service", "profiles", "samples", "from", "until")
	leftOut := c.rows(len(list), limit, func(i int) []string {
		s := &list[i]
		return []string{name(s.Service), strconv.Itoa(s.Profiles), strconv.Itoa(s.Samples), formatTime(s.From),
			formatTime(s.Until)}
	})
	c.leftOut(leftOut, "services", "`contains`, or a larger `limit`")
	return nil
}

type listProfilesIn struct {
	Service string `json:"service,omitempty" jsonschema:"name of the service; without one, the error lists some"`
	Limit   int    `json:"limit,omitempty" jsonschema:"how many, 50 by default, at most 500"`
}

func listProfiles(c *call, in *listProfilesIn) error {
	limit := c.within("limit", in.Limit, 50, 500)
	if err := c.requireNames(in.Service, nil); err != nil {
		return err
	}
	list, err := c.Store.Catalog(c.ctx, in.Service, c.meter)
	if err := cmp.Or(c.params.Check(), err); err != nil {
		return err
	}
	if len(list) == 0 {
		return noService(in.Service)
	}
	c.linef("%d sample types of %s; now is %s", len(list), name(in.Service), formatTime(c.now.UnixNano()))
	c.row("profile", "type", "unit", "values", "samples", "instances", "from", "until")
	leftOut := c.rows(len(list), limit, func(i int) []string {
		p := &list[i]
		typ := name(p.Type.Type)
		if p.Default {
			typ += " (default)"
		}
		return []string{
			name(p.Profile), typ, clean(p.Type.Unit, 30), p.Values.String(), strconv.Itoa(p.Samples), strconv.Itoa(p.Instances),
			formatTime(p.From), formatTime(p.Until),
		}
	})
	c.leftOut(leftOut, "sample types", "a larger `limit`")
	return nil
}

type listAttributesIn struct {
	selection
	Contains string `json:"contains,omitempty" jsonschema:"only attributes whose key contains this text"`
	Limit    int    `json:"limit,omitempty" jsonschema:"how many values of each, the most frequent ones, 10 by default, at most 200"`
}

func listAttributes(c *call, in *listAttributesIn) error {
	limit := c.within("limit", in.Limit, 10, 200)
	sel, _, err := in.read(c, nil)
	if err != nil {
		return err
	}
	list, err := c.Store.Attributes(c.ctx, sel, limit)
	if err != nil {
		return err
	}
	list = slices.DeleteFunc(list, func(a answers.AttributeInfo) bool {
		return !strings.Contains(strings.ToLower(a.Key), strings.ToLower(in.Contains))
	})
	c.linef("%d attributes of %s %s, with the number of samples of each value", len(list), name(in.Service),
		name(in.Profile))
	c.row("attribute", "of", "values")
	leftOut := c.rows(len(list), len(list), func(i int) []string {
		a := &list[i]
		var values []string
		for _, v := range a.Values {
			values = append(values, fmt.Sprintf("%s (%d)", name(v.Value), v.Samples))
		}
		if a.More > 0 {
			values = append(values, fmt.Sprintf("and %d more (a larger `limit`)", a.More))
		}
		return []string{name(a.Key), a.Scope.String(), strings.Join(values, ", ")}
	})
	c.leftOut(leftOut, "attributes", "`contains`")
	return nil
}

// maxNames bounds the names that an error lists.
const maxNames = 20

// requireNames returns an error that lists what there is if the name of the service, or of the profile if there must be
// one, is missing.
func (c *call) requireNames(service string, profile *string) error {
	missing, tool := "service", "list_services"
	var names []string
	switch {
	case service == "":
		list, err := c.Store.Services(c.ctx, c.meter)
		if err != nil {
			return err
		}
		for i := range list {
			names = append(names, name(list[i].Service))
		}
	case profile != nil && *profile == "":
		missing, tool = "profile", "list_profiles"
		list, err := c.Store.Catalog(c.ctx, service, c.meter)
		if err != nil {
			return err
		}
		for i := range list {
			names = append(names, name(list[i].Profile))
		}
		if len(list) == 0 {
			return noService(service)
		}
		names = slices.Compact(names) // a profile has its types side by side
	default:
		return nil
	}
	hint := tool + " lists them"
	if len(names) > 0 {
		hint = "there is " + strings.Join(names[:min(len(names), maxNames)], ", ") + "; " + hint
	}
	return query.BadRequest("`"+missing+"` is missing", hint)
}

func noService(service string) error {
	return fmt.Errorf("%w: there is no service %q", model.ErrNothing, model.Shorten(service))
}
