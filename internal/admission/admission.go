// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package admission bounds the bytes that a process is receiving: encoded bodies that it holds, and decoded payloads that are
// not delivered yet.
//
// Every payload has a Claim on the process's Budget (Share). The claim grows as bytes arrive (Acquire, ReadAll), shrinks as they
// are dropped (Return), and ends with the delivery (Release). If the budget is used up, Acquire waits for at most MaxWait and
// then returns ErrBusy: the sender should retry later. The oldest claim comes first.
//
// No sender can use up the budget:
//   - An eighth of it is reserved for small payloads, so that large ones never delay them.
//   - A claim that is alone in the rest may always grow. Therefore every payload within its receiver's limits fits.
//   - If all claims wait for each other, the youngest is refused, and returns its bytes.
//   - If a claim has waited for a second, the slowest sender is refused, provided that it has sent less than 64 KiB/s for at
//     least a second.
package admission

import (
	"context"
	"errors"
	"io"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// ErrBusy reports that the budget is used up. The same payload may fit later.
var ErrBusy = errors.New("too many bytes are being received at the moment")

const (
	// MaxWait is the longest time that Acquire waits.
	MaxWait = 3 * time.Second

	// Only small payloads use one smallPart-th of the budget.
	smallPart = 8
	// maxSmallBytes is the most that a claim acquires of that part. In a small budget it is a quarter of the part, but at least
	// leastSmallBytes.
	maxSmallBytes   = 1 << 20
	leastSmallBytes = 128 << 10
	// A payload above one largePart-th of the budget is decoded alone.
	largePart = 16
	// patience is how long a claim waits before a slow sender is refused for it.
	patience = time.Second
	// slowBytesPerSecond is the rate below which a sender is slow.
	slowBytesPerSecond = 64 << 10
	// maxWaiting bounds the claims that wait.
	maxWaiting = 1024
)

// Budget is a number of bytes that claims share.
type Budget struct {
	// workers holds a token for each payload that is being decoded, and largeWorker holds one for a large payload.
	workers, largeWorker chan struct{}

	mu       sync.Mutex
	maxBytes int64
	// heldSmall and heldLarge are the bytes that small claims hold, and all others.
	heldSmall, heldLarge int64
	claims               map[*Claim]struct{}
	// waiting is ordered by age, the oldest claim first.
	waiting  []*Claim
	sequence uint64
}

// New returns a budget of maxBytes. Most callers want Share.
func New(maxBytes int64) *Budget {
	return &Budget{
		maxBytes: maxBytes, claims: map[*Claim]struct{}{},
		// More decoders than processors would take memory and save no time.
		workers: make(chan struct{}, runtime.GOMAXPROCS(0)), largeWorker: make(chan struct{}, 1),
	}
}

// HeldBytes returns the number of bytes that claims hold.
func (b *Budget) HeldBytes() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.heldSmall + b.heldLarge
}

// Work calls decode when a processor is free for it. Its error is that of ctx. Use Claim.Work if there is a claim.
func (b *Budget) Work(ctx context.Context, decode func()) error {
	select {
	case b.workers <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-b.workers }()
	decode()
	return nil
}

// Work calls decode when a processor is free for it. A decoder may need many times the payload's bytes while it works:
// if the claim holds more than a sixteenth of the budget, its payload is decoded while no other such payload is. The
// error is that of ctx.
func (c *Claim) Work(ctx context.Context, decode func()) error {
	b := c.budget
	b.mu.Lock()
	isLarge := c.held > b.maxBytes/largePart
	b.mu.Unlock()
	if isLarge {
		select {
		case b.largeWorker <- struct{}{}:
		case <-ctx.Done():
			return ctx.Err()
		}
		defer func() { <-b.largeWorker }()
	}
	return b.Work(ctx, decode)
}

// Begin returns a claim that holds no bytes. The caller must Release it.
func (b *Budget) Begin() *Claim {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.sequence++
	c := &Claim{budget: b, age: b.sequence, lastSeen: time.Now(), isSmall: true, isReading: true}
	b.claims[c] = struct{}{}
	return c
}

// Claim is what one payload holds of a budget. One goroutine uses it.
type Claim struct {
	budget *Budget
	age    uint64
	// received counts the bytes that arrived from the sender, encoded.
	received atomic.Int64
	// buffers are those of ReadAll.
	buffers [][]byte

	// budget.mu guards what follows.
	held    int64
	isSmall bool
	// isReading reports that the claim waits for its sender. Otherwise it ends by itself.
	isReading bool
	isRefused bool
	interrupt func()
	// lastReceived is the value of received at lastSeen. The sender's rate is measured since then.
	lastSeen     time.Time
	lastReceived int64
	// want is how many more bytes a waiting claim needs. answer receives the outcome.
	want   int64
	answer chan error
}

// OnRefusal sets a function that makes a blocked read of the body return. It is called when the claim's sender is too
// slow while others wait; Acquire and ReadAll then return ErrBusy. It must not block and must not use the claim.
func (c *Claim) OnRefusal(interrupt func()) {
	c.budget.mu.Lock()
	defer c.budget.mu.Unlock()
	c.interrupt = interrupt
}

// Count returns a reader of r that counts the bytes that arrive, to detect a slow sender.
func (c *Claim) Count(r io.Reader) io.Reader { return &countingReader{reader: r, claim: c} }

type countingReader struct {
	reader io.Reader
	claim  *Claim
}

func (r *countingReader) Read(p []byte) (int, error) {
	n, err := r.reader.Read(p)
	r.claim.received.Add(int64(n))
	return n, err
}

// Complete declares that all of the payload has arrived. From then on the claim is not refused for a slow sender.
func (c *Claim) Complete() {
	c.budget.mu.Lock()
	defer c.budget.mu.Unlock()
	c.isReading, c.interrupt = false, nil
}

// IsRefused reports whether the claim was refused while its body was being read.
func (c *Claim) IsRefused() bool {
	c.budget.mu.Lock()
	defer c.budget.mu.Unlock()
	return c.isRefused
}

// Acquire waits until the budget has room for n more bytes, and adds them to the claim. If there is no room in time, it returns
// ErrBusy; if ctx ends first, the error of ctx. The claim is then unchanged.
func (c *Claim) Acquire(ctx context.Context, n int64) error {
	b := c.budget
	b.mu.Lock()
	if c.isRefused {
		b.mu.Unlock()
		return ErrBusy
	}
	if b.grant(c, n) {
		b.mu.Unlock()
		return nil
	}
	if len(b.waiting) >= maxWaiting {
		b.mu.Unlock()
		return ErrBusy
	}
	answer := make(chan error, 1)
	c.want, c.answer = n, answer
	at, _ := slices.BinarySearchFunc(b.waiting, c.age, func(w *Claim, age uint64) int {
		if w.age < age {
			return -1
		}
		return 1
	})
	b.waiting = slices.Insert(b.waiting, at, c)
	b.refuseForDeadlock()
	b.mu.Unlock()
	return c.wait(ctx, answer)
}

func (c *Claim) wait(ctx context.Context, answer <-chan error) error {
	b := c.budget
	giveUp := time.NewTimer(MaxWait)
	defer giveUp.Stop()
	impatient := time.NewTicker(patience)
	defer impatient.Stop()
	for {
		select {
		case err := <-answer:
			return err
		case <-ctx.Done():
			b.abandon(c, ctx.Err())
			return <-answer
		case <-giveUp.C:
			b.abandon(c, ErrBusy)
			return <-answer
		case <-impatient.C:
			b.mu.Lock()
			b.refuseSlowest(c)
			b.mu.Unlock()
		}
	}
}

// Charge adds n bytes that are allocated already, and does not wait: it is too late to refuse a payload that has been decoded.
// If the budget is exceeded, others wait. Only a few payloads are decoded at a time, so the excess is small.
func (c *Claim) Charge(n int64) {
	c.budget.mu.Lock()
	defer c.budget.mu.Unlock()
	c.budget.add(c, n)
}

// Return releases n bytes of the claim.
func (c *Claim) Return(n int64) {
	b := c.budget
	b.mu.Lock()
	defer b.mu.Unlock()
	b.add(c, -min(n, c.held))
	b.admitWaiting()
}

// Resize makes the claim hold n bytes, which are allocated already, and does not wait, like Charge. A claim that has become small
// moves to the part of the budget for small ones if there is room.
func (c *Claim) Resize(n int64) {
	b := c.budget
	b.mu.Lock()
	defer b.mu.Unlock()
	b.add(c, n-c.held)
	if !c.isSmall && b.hasRoomForSmall(n, n) {
		b.heldLarge -= n
		b.heldSmall += n
		c.isSmall = true
	}
	b.admitWaiting()
}

// HeldBytes returns the number of bytes that the claim holds.
func (c *Claim) HeldBytes() int64 {
	c.budget.mu.Lock()
	defer c.budget.mu.Unlock()
	return c.held
}

// DropBuffers declares that the bytes that ReadAll returned are no longer needed. The claim keeps its size, for what they were
// decoded to.
func (c *Claim) DropBuffers() {
	for _, buffer := range c.buffers {
		keepBuffer(buffer)
	}
	c.buffers = nil
}

// Release ends the claim. The result of ReadAll must not be used afterwards. A second call does nothing.
func (c *Claim) Release() {
	b := c.budget
	b.mu.Lock()
	b.add(c, -c.held)
	c.interrupt = nil
	delete(b.claims, c)
	b.admitWaiting()
	b.mu.Unlock()
	c.DropBuffers()
}

// add adds n bytes, which may be negative, to the claim and to the part of the budget that it uses.
func (b *Budget) add(c *Claim, n int64) {
	c.held += n
	if c.isSmall {
		b.heldSmall += n
	} else {
		b.heldLarge += n
	}
}

// grant adds n bytes to the claim if there is room for them.
func (b *Budget) grant(c *Claim, n int64) bool {
	if c.isSmall && b.hasRoomForSmall(c.held+n, n) {
		b.add(c, n)
		return true
	}
	if len(b.waiting) > 0 && b.waiting[0].age < c.age {
		return false // an older claim is first
	}
	move := n // bytes that move to the large part: all of a claim that was small so far
	others := b.heldLarge
	if c.isSmall {
		move += c.held
	} else {
		others -= c.held
	}
	if others > 0 && b.heldLarge+move > b.maxBytes-b.maxBytes/smallPart {
		return false
	}
	if c.isSmall {
		b.heldSmall -= c.held
		b.heldLarge += c.held
		c.isSmall = false
	}
	b.add(c, n)
	return true
}

// hasRoomForSmall reports whether a claim of held bytes is small, and there is room for the added bytes of it.
func (b *Budget) hasRoomForSmall(held, added int64) bool {
	smallBytes := b.maxBytes / smallPart
	return held <= min(maxSmallBytes, max(smallBytes/4, leastSmallBytes)) && b.heldSmall+added <= smallBytes
}

// admitWaiting grants waiting claims, the oldest first, and stops at the first that does not fit.
func (b *Budget) admitWaiting() {
	for len(b.waiting) > 0 {
		c := b.waiting[0]
		if !b.grant(c, c.want) {
			b.refuseForDeadlock()
			return
		}
		b.answer(c, nil)
	}
}

// answer ends the waiting of a claim.
func (b *Budget) answer(c *Claim, err error) {
	b.waiting = slices.DeleteFunc(b.waiting, func(w *Claim) bool { return w == c })
	c.answer <- err
	c.want, c.answer = 0, nil
}

// abandon ends the waiting of a claim unless it was answered in the meantime.
func (b *Budget) abandon(c *Claim, why error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if c.answer != nil {
		b.answer(c, why)
		b.admitWaiting() // the next claim in the queue may want less
	}
}

// refuseForDeadlock refuses the youngest claim that holds bytes if all that hold bytes wait.
func (b *Budget) refuseForDeadlock() {
	var youngest *Claim
	for c := range b.claims {
		if c.isSmall || c.held == 0 {
			continue
		}
		if c.answer == nil || c.isRefused {
			return // this claim will release its bytes
		}
		if youngest == nil || c.age > youngest.age {
			youngest = c
		}
	}
	if youngest != nil && youngest != b.waiting[0] {
		b.refuse(youngest)
	}
}

// refuseSlowest refuses the slowest sender on behalf of waiter, if waiter is the first in the queue.
func (b *Budget) refuseSlowest(waiter *Claim) {
	if len(b.waiting) == 0 || b.waiting[0] != waiter {
		return
	}
	var slowest *Claim
	slowestRate := int64(slowBytesPerSecond)
	for c := range b.claims {
		if c.isRefused {
			if !c.isSmall && c.held > 0 {
				return // this claim is about to release its bytes
			}
			continue
		}
		if c.isSmall || c.held == 0 || !c.isReading || c.answer != nil {
			continue
		}
		elapsed, received := time.Since(c.lastSeen), c.received.Load()
		if elapsed < patience/2 {
			continue
		}
		// Use only the recent rate: a sender could send much at first and then stall.
		if rate := int64(float64(received-c.lastReceived) / elapsed.Seconds()); rate < slowestRate && elapsed < 3*patience {
			slowest, slowestRate = c, rate
		}
		c.lastSeen, c.lastReceived = time.Now(), received
	}
	if slowest != nil {
		b.refuse(slowest)
	}
}

func (b *Budget) refuse(c *Claim) {
	c.isRefused = true
	if c.interrupt != nil {
		c.interrupt()
	}
	if c.answer != nil {
		b.answer(c, ErrBusy)
	}
}

// process is the budget that all receivers of the process share.
var process = struct {
	sync.Mutex
	budget *Budget
	limits map[*int64]struct{}
}{budget: New(0), limits: map[*int64]struct{}{}}

// Process returns the budget that all receivers of the process share. Share sets its size.
func Process() *Budget { return process.budget }

// Share returns the budget of the process and a function that the caller must call when it stops receiving. The budget
// is as large as the largest maxBytes of those that share it: a payload within the limits of any of them fits, and
// several receivers do not add up.
func Share(maxBytes int64) (budget *Budget, leave func()) {
	process.Lock()
	defer process.Unlock()
	limit := &maxBytes
	process.limits[limit] = struct{}{}
	resize()
	return process.budget, func() {
		process.Lock()
		defer process.Unlock()
		delete(process.limits, limit)
		resize()
	}
}

func resize() {
	b := process.budget
	b.mu.Lock()
	defer b.mu.Unlock()
	b.maxBytes = 0
	for limit := range process.limits {
		b.maxBytes = max(b.maxBytes, *limit)
	}
	b.admitWaiting()
}
