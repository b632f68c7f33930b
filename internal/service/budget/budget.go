// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package budget bounds the memory that a process takes for what it receives.
//
// Each payload has a Claim on the process's Budget, and goes through these steps: ReadAll reads its body, Acquire or
// Build acquires the memory that its profiles will take before they are built, Built replaces that estimate by their
// size, and Release ends the claim after the delivery. What the budget has no room for within MaxWait is refused with
// ErrBusy: the sender should retry. What the whole budget has no room for is refused with a *TooLargeError.
//
// Nobody holds bytes in advance: a body holds what has arrived of it. So a claim may have to wait for more while it
// holds some. Of those that hold bytes, at least one goes on; if all of them wait, one is refused, and the others go on
// with what it held.
//
// A quarter of the bytes is reserved for small payloads, so that large ones do not delay them.
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
	// Need is what the payload needs of the budget, or 0 if Limit is a configured one.
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
	// MaxWait is the longest time that a claim waits for bytes.
	MaxWait = 3 * time.Second

	// bodyPart is the part of a budget that bodies have: as sent, or without their Content-Encoding.
	bodyPart = 4
	// reservedPart is the part of a lane that is reserved for small claims, and smallPart the most that one of them has.
	reservedPart = 4
	smallPart    = 16
)

// Budget is a number of bytes that claims share.
type Budget struct {
	bodies, profiles *lane
}

// New returns a budget of maxBytes.
func New(maxBytes int64) *Budget { return newParts(maxBytes/bodyPart, maxBytes-maxBytes/bodyPart) }

func newParts(bodyBytes, profileBytes int64) *Budget {
	return &Budget{bodies: newLane(bodyBytes, false), profiles: newLane(profileBytes, true)}
}

// Begin returns a claim that holds no bytes. The caller must Release it.
func (b *Budget) Begin() *Claim {
	return &Claim{budget: b, body: share{lane: b.bodies}, profiles: share{lane: b.profiles}}
}

// HeldBytes returns the number of bytes that claims hold.
func (b *Budget) HeldBytes() int64 { return b.bodies.inUse.Load() + b.profiles.inUse.Load() }

// MaxBodyBytes returns the size of the largest body.
func (b *Budget) MaxBodyBytes() int64 { return b.bodies.largeBytes }

// SmallBytes returns the most memory that profiles can take without waiting for large ones.
func (b *Budget) SmallBytes() int64 { return b.profiles.maxSmallBytes }

// MaxProfileBytes returns the most memory that the profiles of one payload can take.
func (b *Budget) MaxProfileBytes() int64 { return b.profiles.largeBytes }

// Claim is what one payload holds of a budget. One goroutine uses it.
type Claim struct {
	budget         *Budget
	body, profiles share
	// used is how much of profiles is in use, and floor how much of that belongs to payloads that are built.
	used, floor int64
	// buffers are those of ReadAll.
	buffers [][]byte
}

// AcquireBody acquires n bytes for a body, or for what reads it.
func (c *Claim) AcquireBody(ctx context.Context, n int64) error { return c.body.acquire(ctx, n) }

// ResizeBody makes the claim hold n bytes for its body. It does not wait for more.
func (c *Claim) ResizeBody(n int64) error {
	c.body.shrink(n)
	return c.body.try(n - c.body.held())
}

// Acquire acquires the n bytes that the profiles of a payload will take. A payload that grows needs Build.
func (c *Claim) Acquire(ctx context.Context, n int64) error {
	if c.profiles.held() > 0 {
		return c.Build(ctx, n, func(size.Reserve) error { return nil })
	}
	if err := c.profiles.acquire(ctx, n); err != nil {
		return err
	}
	c.used += n
	return nil
}

// Build calls build, which reserves bytes before it takes them. expected is how many it will probably reserve: the
// claim acquires them at once. After an error the claim is as before.
func (c *Claim) Build(ctx context.Context, expected int64, build func(size.Reserve) error) error {
	c.floor = c.used
	err := c.grow(ctx, c.used+max(0, min(expected, c.profiles.lane.largeBytes-c.used)))
	if err == nil {
		err = build(func(n int) error {
			more := int64(max(0, n))
			c.used += more
			err := c.grow(ctx, c.used)
			if err != nil {
				c.used -= more
			}
			return err
		})
	}
	if err != nil {
		c.settle(c.floor)
	}
	return err
}

// grow acquires bytes until the claim holds n for profiles.
func (c *Claim) grow(ctx context.Context, n int64) error {
	more := n - c.profiles.held()
	if more <= 0 {
		return nil
	}
	// Ask for some more at once, so that a decoder need not ask for each entry.
	if extra := max(more, c.profiles.held()/4); extra > more && c.profiles.tryMore(extra) {
		return nil
	}
	return c.profiles.acquire(ctx, more)
}

// Built records that the payload of the last Build or Acquire has become profiles that take n bytes of memory, and that
// nothing else of it is kept.
func (c *Claim) Built(n int64) { c.settle(c.floor + n) }

// settle releases what the claim holds above n bytes for profiles.
func (c *Claim) settle(n int64) {
	c.used = n
	c.profiles.shrink(n)
}

// HeldBytes returns the number of bytes that the claim holds.
func (c *Claim) HeldBytes() int64 { return c.body.held() + c.profiles.held() }

// DropBody declares that the bytes that ReadAll returned are no longer needed.
func (c *Claim) DropBody() {
	for _, buffer := range c.buffers {
		keepBuffer(buffer)
	}
	c.buffers = nil
	c.body.shrink(0)
}

// Release ends the claim. The result of ReadAll must not be used afterwards. A second call does nothing.
func (c *Claim) Release() {
	c.settle(0)
	c.DropBody()
}
