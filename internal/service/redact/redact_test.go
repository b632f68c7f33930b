// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestText(t *testing.T) {
	for text, want := range map[string]string{
		"http://h:6060/debug/pprof/heap?seconds=5":          "http://h:6060/debug/pprof/heap?seconds=5",
		"http://me:secret@h/p":                              "http://REDACTED:REDACTED@h/p",
		"http://secret@h/p":                                 "http://REDACTED:REDACTED@h/p",
		"http://h/?Token=secret&b=1&my_secret=x#s":          "http://h/?Token=REDACTED&b=1&my_secret=REDACTED",
		"http://h/?%6bey=secret&%zz=secret":                 "http://h/?%6bey=REDACTED&%zz=REDACTED",
		"http://h/?b=1&sig=abc&a=2&X-Amz-Signature=q":       "http://h/?b=1&sig=REDACTED&a=2&X-Amz-Signature=REDACTED",
		"http://h/?access_token=a&Api-Key=b&key=c&monkey=d": "http://h/?access_token=REDACTED&Api-Key=REDACTED&key=REDACTED&monkey=d",
		"http://h/?pass%77ord=a&token&%zz=1":                "http://h/?pass%77ord=REDACTED&token&%zz=REDACTED",
		"me:secret@h":                                       "REDACTED",
		"me@secret":                                         "REDACTED",
		"http://h/%zz?secret":                               "REDACTED",
		"https://me:pass%20word@[::1]:443/?auth=ab":         "https://REDACTED:REDACTED@[::1]:443/?auth=REDACTED",
	} {
		assert.Equal(t, want, RawURL(text), text)
	}
}

func TestURLs(t *testing.T) {
	for text, want := range map[string]string{
		"":               "",
		"me@h, no URL":   "me@h, no URL",
		"http://h/p?a=1": "http://h/p?a=1",
		"ask team shop, see http://wiki/shop (or http://h:1/?a=1 )": "ask team shop, see http://wiki/shop (or http://h:1/?a=1 )",
		"http://h/?token=a secret&a=1":                              "http://h/?token=REDACTED&a=1",
		`{"url":"http://me:secret@h/","team":"shop"}`:               `{"url":"http://REDACTED:REDACTED@h/","team":"shop"}`,
		"http://a/,http://me:secret@b/":                             "http://a/,http://REDACTED:REDACTED@b/",
		"http://h/?to=http://me:secret@b/":                          "http://h/?to=http://REDACTED:REDACTED@b/",
		"http://h/?token=http://secret/":                            "http://h/?token=REDACTED",
		"at http://me:a secret@h/ it is":                            "at REDACTED",
		"at http://me:1 secret@h/ it is":                            "at REDACTED",
		"two lines\nhttp://me:secret@h/\nmore":                      "two lines\nhttp://REDACTED:REDACTED@h/\nmore",
		"at jdbc:mysql://me:secret@h/ it is":                        "at REDACTED it is",
		"jdbc:sqlserver://h;password=secret":                        "jdbc:REDACTED",
		"://me:secret@h":                                            "REDACTED",
		"see http://h/%zz for more":                                 "see REDACTED for more",
		strings.Repeat("a://me:secret@h ", 17):                      "REDACTED",
	} {
		assert.Equal(t, want, URLs(text), text)
	}
}

func TestError(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://secretuser:secret@localhost:1/?token=secret",
		http.NoBody)
	require.NoError(t, err)
	_, err = http.DefaultClient.Do(request) //nolint:bodyclose // there is no answer
	require.Error(t, err)
	shown := Error(fmt.Errorf("export: %w", err))
	assert.ErrorIs(t, shown, context.Canceled)
	assert.Equal(t, "get http://REDACTED:REDACTED@localhost:1/?token=REDACTED: context canceled", shown.Error())
	assert.Equal(t, context.Canceled, Error(context.Canceled))
	assert.NoError(t, Error(nil))
}

// FuzzURL puts a secret into each place of a URL that holds secrets. It is never shown.
func FuzzURL(f *testing.F) {
	f.Add("http", "user", "h:1", "/p", "token", "a=b")
	f.Add("https", "", "[::1%25eth0]", "", "%70assword", "%zz")
	f.Add("mailto", "a@b", "", "x", "sig", ";=&")
	const secret = "s3cr3t-v4lu3"
	f.Fuzz(func(t *testing.T, scheme, user, host, path, key, query string) {
		if strings.Contains(scheme+host+path+key+query+user, secret) {
			return
		}
		name, err := url.QueryUnescape(key)
		isSecret := err == nil && IsSecret(name) && !strings.ContainsAny(key, "&=#")
		texts := []string{
			scheme + "://" + user + ":" + secret + "@" + host + path,
			scheme + ":" + user + ":" + secret + "@" + host + path,
			(&url.URL{Scheme: scheme, User: url.UserPassword(user, secret), Host: host, Path: path, RawQuery: query}).String(),
			(&url.URL{Scheme: scheme, User: url.User(secret), Host: host, Path: path, RawQuery: query}).String(),
		}
		if isSecret && !strings.ContainsAny(path, "?#") {
			texts = append(texts, (&url.URL{Scheme: scheme, Host: host, Path: path}).String()+"?"+query+"&"+key+"="+secret)
		}
		for i, text := range texts {
			u, err := url.Parse(text)
			// RawURL after the authority is part of the path: no client uses it as a password.
			if err == nil && u.User == nil && u.Opaque == "" && !isSecret {
				continue
			}
			if err == nil && strings.Contains(u.Path+u.Host+u.Scheme, secret) {
				continue
			}
			if shown := RawURL(text); strings.Contains(shown, secret) {
				t.Errorf("%q is shown as %q", text, shown)
			}
			if shown := URLs("x " + text + " y"); i == 0 && !strings.ContainsAny(user, "/?#") &&
				strings.Contains(shown, secret) {
				t.Errorf("%q in a text is shown as %q", text, shown)
			}
			if err == nil {
				again, err := url.Parse(RawURL(text))
				require.NoError(t, err)
				require.Equal(t, u.Host, again.Host)
			}
		}
	})
}
