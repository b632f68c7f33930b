// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package budget bounds the memory that a process takes for received data.
//
// Each payload has a Reservation of the process's Budget, and goes through these steps: ReadAll reads its body, Reserve
// or Build reserves the memory that its profiles will take before they are built, Built replaces that estimate by their
// size, and Release frees all of it after the delivery. What the budget has no room for within MaxWait is refused with
// ErrBusy: the sender should retry. What the whole budget has no room for is refused with a *TooLargeError.
//
// Nobody holds bytes in advance: a body holds the bytes that have arrived. So a reservation may have to wait for more
// while it holds some. Of those that hold bytes, at least one goes on; if all of them wait, one is refused, and the
// others go on with what it held.
//
// A quarter of the bytes is kept free for small payloads, so that large ones do not delay them.
package budget

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/size"
)

// ErrBusy reports that the budget is used up. The same payload may fit later.
var ErrBusy = errors.New("too many bytes are being received at the moment")

// TooLargeError reports a payload that needs more than the largest that is accepted.
type TooLargeError struct {
	// Need is the payload's demand on the budget, or 0 if Limit is a configured one.
	Need int64
	// Limit is the most that a payload can have, in bytes.
	Limit int64
	// IsMemory reports that the bytes are those of the profiles in memory, and not those of the payload.
	IsMemory bool
}

// Is reports whether target is size.ErrFull.
func (e *TooLargeError) Is(target error) bool { return target == size.ErrFull }

func (e *TooLargeError) Error() string {
	if e.IsMemory {
		return fmt.Sprintf(
			"its profiles would take %d bytes of memory, and the memory limit of this process leaves %d for one payload",
			e.Need, e.Limit)
	}
	if e.Need > 0 {
		return fmt.Sprintf("%d bytes, and the memory limit of this process leaves %d for one body", e.Need, e.Limit)
	}
	return fmt.Sprintf("larger than %d bytes", e.Limit)
}

const (
	// MaxWait is the longest time that a reservation waits for bytes.
	MaxWait = 3 * time.Second

	// bodyPart is the part of a budget that bodies have: as sent, or without their Content-Encoding.
	bodyPart = 4
	// reservedPart is the part of a lane that is reserved for small reservations, and smallPart the most that one of them
	// has.
	reservedPart = 4
	smallPart    = 16
)

// Budget is a number of bytes that reservations share.
type Budget struct {
	bodies, profiles *lane
}

// New returns a budget of maxBytes.
func New(maxBytes int64) *Budget { return newParts(maxBytes/bodyPart, maxBytes-maxBytes/bodyPart) }

func newParts(bodyBytes, profileBytes int64) *Budget {
	return &Budget{bodies: newLane(bodyBytes, false), profiles: newLane(profileBytes, true)}
}

// Begin returns a reservation that holds no bytes. The caller must Release it.
func (b *Budget) Begin() *Reservation {
	return &Reservation{budget: b, body: share{lane: b.bodies}, profiles: share{lane: b.profiles}}
}

// HeldBytes returns the number of bytes that reservations hold.
func (b *Budget) HeldBytes() int64 { return b.bodies.inUse.Load() + b.profiles.inUse.Load() }

// MaxBodyBytes returns the size of the largest body.
func (b *Budget) MaxBodyBytes() int64 { return b.bodies.largeBytes }

// SmallBytes returns the most memory that profiles can take without waiting for large ones.
func (b *Budget) SmallBytes() int64 { return b.profiles.maxSmallBytes }

// MaxProfileBytes returns the most memory that the profiles of one payload can take.
func (b *Budget) MaxProfileBytes() int64 { return b.profiles.largeBytes }

// Reservation is the memory that one payload holds of a budget. One goroutine uses it.
type Reservation struct {
	budget         *Budget
	body, profiles share
	// used is how much of profiles is in use, and floor how much of that belongs to payloads that are built.
	used, floor int64
	// buffers are those of ReadAll.
	buffers [][]byte
}

// ReserveBody reserves n bytes for a body, or for what reads it.
func (r *Reservation) ReserveBody(ctx context.Context, n int64) error { return r.body.reserve(ctx, n) }

// ResizeBody makes the reservation hold n bytes for its body. It does not wait for more.
func (r *Reservation) ResizeBody(n int64) error {
	r.body.shrink(n)
	return r.body.try(n - r.body.held())
}

// Reserve reserves the n bytes that the profiles of a payload will take. A payload that grows needs Build.
func (r *Reservation) Reserve(ctx context.Context, n int64) error {
	r.floor = r.used
	err := r.profiles.reserve(ctx, n)
	if err == nil {
		r.used += n
	}
	return err
}

// Build calls build, which reserves bytes before it takes them. expected is how many it will probably reserve: the
// budget grants them at once. After an error the reservation is as before.
func (r *Reservation) Build(ctx context.Context, expected int64, build func(size.Reserve) error) error {
	r.floor = r.used
	err := r.grow(ctx, r.used+max(0, min(expected, r.profiles.lane.largeBytes-r.used)))
	if err == nil {
		err = build(func(n int) error {
			more := int64(max(0, n))
			r.used += more
			err := r.grow(ctx, r.used)
			if err != nil {
				r.used -= more
			}
			return err
		})
	}
	if err != nil {
		r.settle(r.floor)
	}
	return err
}

// grow reserves bytes until the reservation holds n for profiles.
func (r *Reservation) grow(ctx context.Context, n int64) error {
	more := n - r.profiles.held()
	if more <= 0 {
		return nil
	}
	// Ask for some more at once, so that a decoder need not ask for each entry.
	if extra := max(more, r.profiles.held()/4); extra > more && r.profiles.tryMore(extra) {
		return nil
	}
	return r.profiles.reserve(ctx, more)
}

// Built records that the payload of the last Build or Reserve has become profiles that take n bytes of memory, and that
// nothing else of it is kept.
func (r *Reservation) Built(n int64) { r.settle(r.floor + n) }

// settle releases the reservation's bytes for profiles above n.
func (r *Reservation) settle(n int64) {
	r.used = n
	r.profiles.shrink(n)
}

// HeldBytes returns the number of bytes that the reservation holds.
func (r *Reservation) HeldBytes() int64 { return r.body.held() + r.profiles.held() }

// DropBody declares that the bytes that ReadAll returned are no longer needed.
func (r *Reservation) DropBody() {
	for _, buffer := range r.buffers {
		keepBuffer(buffer)
	}
	r.buffers = nil
	r.body.shrink(0)
}

// Release ends the reservation. The result of ReadAll must not be used afterwards. A second call does nothing.
func (r *Reservation) Release() {
	r.settle(0)
	r.DropBody()
}
