// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package targets

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"unicode/utf8"
)

// address is where a target listens.
type address struct {
	host string // an IPv6 address stands without brackets
	port int    // 0 where the scheme decides
}

// parseAddress reads `host`, `host:port`, `[v6]`, `[v6]:port` and, as Kubernetes' discovery has it, a bare `v6`.
func parseAddress(text string) (address, error) {
	if text == "" {
		return address{}, errors.New("the address is empty")
	}
	if strings.Contains(text, "/") {
		return address{}, fmt.Errorf("found %q: write host:port, the scheme in `scheme`, and the path in `profiles` or `path_prefix`",
			withoutUser(text))
	}
	if strings.Contains(text, "@") {
		return address{}, fmt.Errorf("found %q: a user and password belong into `basic_auth`", withoutUser(text))
	}
	if ip, isIP := parseIP(text); isIP {
		return address{host: ip.String()}, nil
	}
	a := address{host: text}
	if strings.Contains(text, ":") && !strings.HasSuffix(text, "]") {
		host, port, err := net.SplitHostPort(text)
		if err != nil {
			return address{}, fmt.Errorf("found %q: write host:port", text)
		}
		number, err := strconv.ParseUint(port, 10, 16)
		if err != nil || number == 0 {
			return address{}, fmt.Errorf("found %q: the port must be a number from 1 to 65535", text)
		}
		a = address{host: host, port: int(number)}
	}
	if strings.HasPrefix(text, "[") {
		ip, isIP := parseIP(strings.TrimSuffix(strings.TrimPrefix(a.host, "["), "]"))
		if !isIP || !ip.Is6() {
			return address{}, fmt.Errorf("found %q: brackets must hold an IPv6 address", text)
		}
		a.host = ip.String()
		return a, nil
	}
	if a.host == "" || !isHost(a.host) {
		return address{}, fmt.Errorf("found %q: write host:port", text)
	}
	return a, nil
}

func parseIP(text string) (netip.Addr, bool) {
	ip, err := netip.ParseAddr(text)
	zone := ip.Zone()
	isASCII := !strings.ContainsFunc(zone, func(r rune) bool { return r > 0x7f }) // url.Parse refuses others in a zone
	return ip, err == nil && isASCII && isHost(zone)
}

// isHost is lenient: names of containers have underscores, and the resolver knows best what other letters mean.
func isHost(text string) bool {
	return utf8.ValidString(text) && !strings.ContainsFunc(text, func(r rune) bool {
		return r <= 0x7f && r != '-' && r != '.' && r != '_' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
	})
}

// urlHost is the address as a URL has it.
func (a address) urlHost() string {
	if a.port != 0 {
		return net.JoinHostPort(a.host, strconv.Itoa(a.port))
	}
	if strings.Contains(a.host, ":") {
		return "[" + a.host + "]"
	}
	return a.host
}

// effectivePort is the port that is asked.
func (a address) effectivePort(scheme string) int {
	switch {
	case a.port != 0:
		return a.port
	case scheme == "https":
		return 443
	default:
		return 80
	}
}
