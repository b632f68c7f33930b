// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package httpserver

import (
	"cmp"
	"context"
	"math"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/otelcol-profiles/otelcol-profiles/internal/service/budget"
)

// ExportService returns a service whose only method, Export, is registered as a stream: for other methods, gRPC reads the
// message before the handler can acquire memory for it.
func ExportService(name string, handle func(grpc.ServerStream) error) *grpc.ServiceDesc {
	return &grpc.ServiceDesc{
		ServiceName: name, HandlerType: (*any)(nil),
		Streams: []grpc.StreamDesc{{
			StreamName:    "Export",
			Handler:       func(_ any, stream grpc.ServerStream) error { return handle(stream) },
			ServerStreams: true, ClientStreams: true,
		}},
	}
}

// MaxMessageBytes is the largest message of a server with max_recv_msg_size_mib, as sent and decompressed; 0 is gRPC's own limit.
func MaxMessageBytes(mib int) int64 {
	const defaultMiB = 4
	return int64(min(cmp.Or(mib, defaultMiB), math.MaxInt32>>20)) << 20
}

// Receiving is how a message is received.
type Receiving struct {
	Claim *budget.Claim
	// MaxBytes is the size of the largest message.
	MaxBytes int64
	// Timeout bounds how long a message may take to arrive; 0 means no limit.
	Timeout time.Duration
}

// Receive reads the message of a call. Then the claim holds its size. The error has a status.
func (g *GRPC) Receive(ctx context.Context, stream grpc.ServerStream, how Receiving) ([]byte, error) {
	if err := how.Claim.ReserveBody(ctx, how.MaxBytes); err != nil {
		return nil, OTLPStatus(err).Err()
	}
	var message []byte
	received := make(chan error, 1)
	go func() { received <- stream.RecvMsg(&message) }() // it ends with the stream, at the latest
	var late <-chan time.Time
	if how.Timeout > 0 {
		late = time.After(how.Timeout)
	}
	select {
	case err := <-received:
		if err != nil {
			return nil, err
		}
	case <-g.serveCtx.Done():
		return nil, OTLPStatus(ErrStopping).Err()
	case <-late:
		return nil, status.Errorf(codes.DeadlineExceeded, "the message did not arrive within %v", how.Timeout)
	}
	if err := how.Claim.ResizeBody(ctx, int64(len(message))); err != nil {
		return nil, OTLPStatus(err).Err()
	}
	return message, nil
}
