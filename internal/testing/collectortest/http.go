// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package collectortest

import (
	"io"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

// Answer is the answer to a request.
type Answer struct {
	StatusCode int
	Header     http.Header
	Body       string
}

// Ask sends a request with headers (key, value, …), on a connection of its own. It follows no redirect and unpacks
// nothing.
func Ask(t testing.TB, method, url string, body io.Reader, headers ...string) Answer {
	t.Helper()
	answer, err := TryAsk(method, url, body, headers...)
	require.NoError(t, err)
	return answer
}

// TryAsk is Ask for a server that may end the connection.
func TryAsk(method, url string, body io.Reader, headers ...string) (Answer, error) {
	request, err := http.NewRequest(method, url, body)
	if err != nil {
		return Answer{}, err
	}
	for i := 0; i < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	request.Host = request.Header.Get("Host")
	client := &http.Client{
		Transport:     &http.Transport{DisableKeepAlives: true, DisableCompression: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	response, err := client.Do(request)
	if err != nil {
		return Answer{}, err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	return Answer{response.StatusCode, response.Header, string(answer)}, err
}
