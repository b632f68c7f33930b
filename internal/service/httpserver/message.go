// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package httpserver

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"slices"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"

	"github.com/otelcol-profiles/otelcol-profiles/internal/service/budget"
)

// transportStream is what gRPC reads messages from (docs/decisions/0017). RecvMsg reads a message whole, and does not
// tell how much of it has arrived. Here a message is read in parts, as the budget has room for them.
type transportStream interface {
	ReadMessageHeader(header []byte) error
	Read(n int) (mem.BufferSlice, error)
	RecvCompress() string
}

// arrivingMessage reads a message as it arrives.
type arrivingMessage struct {
	stream   transportStream
	stopping <-chan struct{}
	// late is sent to when the message has not arrived in time; nil means never.
	late <-chan time.Time
	// left is how much of the message has not been read.
	left int64
}

// receive returns the message, decompressed.
func (m *arrivingMessage) receive(ctx context.Context, reservation *budget.Reservation, limit int64) ([]byte, error) {
	var header [5]byte
	if err := m.await(func() error { return m.stream.ReadMessageHeader(header[:]) }); err != nil {
		return nil, err
	}
	m.left = int64(binary.BigEndian.Uint32(header[1:]))
	message, err := reservation.ReadAll(ctx, m, m.left, limit)
	if err != nil {
		return nil, err
	}
	if m.left > 0 {
		return nil, fmt.Errorf("the call ended %d bytes before the end of its message", m.left)
	}
	switch header[0] {
	case 0:
		return message, nil
	case 1:
		return m.decompress(ctx, message, reservation, limit)
	}
	return nil, status.Errorf(codes.Internal, "a message with unknown flags %#x", header[0])
}

// Read reads a part of the message.
func (m *arrivingMessage) Read(p []byte) (int, error) {
	// gRPC keeps a part until all of it is there.
	const partBytes = 64 << 10
	n := int(min(m.left, int64(len(p)), partBytes))
	if n == 0 {
		return 0, io.EOF
	}
	var part mem.BufferSlice
	if err := m.await(func() (err error) {
		part, err = m.stream.Read(n)
		return err
	}); err != nil {
		return 0, err
	}
	defer part.Free()
	part.CopyTo(p)
	m.left -= int64(n)
	return n, nil
}

// await calls read until it returns, the server stops, or the time is up. Then read ends with the stream, and nobody
// uses its results.
func (m *arrivingMessage) await(read func() error) error {
	done := make(chan error, 1)
	go func() { done <- read() }()
	select {
	case err := <-done:
		return err
	case <-m.stopping:
		return ErrStopping
	case <-m.late:
		return ErrLate
	}
}

// decompress decodes a message that has arrived. gRPC has refused encodings that it does not know.
func (m *arrivingMessage) decompress(
	ctx context.Context, message []byte, reservation *budget.Reservation, limit int64,
) ([]byte, error) {
	encoding := m.stream.RecvCompress()
	if !slices.Contains(Encodings, encoding) {
		return nil, status.Errorf(codes.Unimplemented, "grpc-encoding %q is not accepted", encoding)
	}
	decoded, finish, err := decode(ctx, encoding, message, reservation, limit)
	if err == nil {
		if finish != nil {
			defer finish()
		}
		message, err = reservation.ReadAll(ctx, decoded, -1, limit)
	}
	if err != nil {
		return nil, fmt.Errorf("decompress %s: %w", encoding, err)
	}
	return message, nil
}
