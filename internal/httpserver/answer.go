// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package httpserver

import (
	"errors"
	"net/http"
	"strconv"
	"time"

	"go.opentelemetry.io/collector/consumer/consumererror"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/status"
)

// DefaultRetryDelay is how long a sender is asked to wait if the pipeline names no delay.
const DefaultRetryDelay = 5 * time.Second

// IsPermanent reports that the pipeline would refuse the same data again.
func IsPermanent(err error) bool {
	if consumererror.IsPermanent(err) {
		return true
	}
	var coded *consumererror.Error
	return errors.As(err, &coded) && !coded.IsRetryable()
}

// RetryDelay returns the delay that a gRPC status within err asks for, or 0.
func RetryDelay(err error) time.Duration {
	refused, known := status.FromError(err)
	if !known {
		return 0
	}
	for _, detail := range refused.Details() {
		if info, ok := detail.(*errdetails.RetryInfo); ok {
			return max(0, info.GetRetryDelay().AsDuration())
		}
	}
	return 0
}

// RetryStatus returns how to answer for an error after which the sender should retry: 429 if the pipeline is
// throttled, otherwise 503, and the delay for SetRetryAfter.
func RetryStatus(err error) (code int, delay time.Duration) {
	s := OTLPStatus(err)
	return HTTPStatus(s), RetryDelay(s.Err())
}

// SetRetryAfter asks the sender to wait, in whole seconds (RFC 9110 section 10.2.3), one at least. 0 asks for nothing.
func SetRetryAfter(w http.ResponseWriter, delay time.Duration) {
	if delay > 0 {
		w.Header().Set("Retry-After", strconv.FormatInt(int64((delay+time.Second-1)/time.Second), 10))
	}
}
