// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package query runs the queries of a store for all protocols: with a memory budget, a limited number of slots, and a
// timeout. All protocols share its parameters (params.go).
//
// All queries share a budget of memory. A query's reservation holds what it computes with, and then the answer, until
// the last byte is written. The slot is for the processor: it is free again when the answer is complete. Otherwise a
// few clients that do not read would keep everyone else out.
package query

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/size"
	"github.com/otelcol-profiles/otelcol-profiles/internal/service/budget"
	"github.com/otelcol-profiles/otelcol-profiles/internal/service/httpserver"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/answers"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/model"
)

// Limits bound queries.
type Limits struct {
	// MaxConcurrent is how many queries are computed at once, besides as many that have just begun (turn); others wait.
	// Where there are several processors, queries leave one of them to what arrives: a push does not wait until queries
	// let it run.
	MaxConcurrent int
	// Timeout bounds a query until its answer is complete.
	Timeout time.Duration
	// TimeoutHint tells users what to change if queries take too long.
	TimeoutHint string
	// Budget has the memory of all queries; nil means the process's.
	Budget *budget.Budget
	// Observe is called for each query; nil is nothing. outcome is ok, refused (the query was at fault) or failed.
	Observe func(ctx context.Context, endpoint, outcome string, took time.Duration)
}

// Queries runs queries within limits that they share.
type Queries struct {
	Limits
	// short holds a token for each query that has just begun, long one for each other query under way.
	short, long chan struct{}
}

// New returns what runs queries within limits.
func New(limits Limits) *Queries {
	if limits.Budget == nil {
		limits.Budget = budget.Queries()
	}
	if limits.Observe == nil {
		limits.Observe = func(context.Context, string, string, time.Duration) {}
	}
	processors := max(1, runtime.GOMAXPROCS(0)-1)
	slots := min(limits.MaxConcurrent, processors)
	return &Queries{Limits: limits, short: make(chan struct{}, slots), long: make(chan struct{}, slots)}
}

// Begin returns the reservation of a query. The caller releases it when the answer is written.
func (q *Queries) Begin() *budget.Reservation { return q.Budget.Begin() }

// WritingBytes is what sending an answer takes besides its bytes: buffers, and gzip's tables.
const WritingBytes = 512 << 10

// Run calls compute, which returns the size of the answer, on the reservation. Afterwards the reservation holds that.
func (q *Queries) Run(ctx context.Context, reservation *budget.Reservation, endpoint string,
	compute func(ctx context.Context, meter *size.Meter) (answerBytes int, err error),
) error {
	start := time.Now()
	limited, cancel := context.WithTimeout(ctx, q.Timeout)
	defer cancel()
	err := q.run(limited, reservation, compute)
	outcome := "ok"
	if err != nil {
		outcome = "failed"
		if q.Error(err).Status < http.StatusInternalServerError {
			outcome = "refused"
		}
	}
	q.Observe(ctx, endpoint, outcome, time.Since(start))
	return err
}

func (q *Queries) run(ctx context.Context, reservation *budget.Reservation,
	compute func(context.Context, *size.Meter) (int, error)) error {
	// A part of the answer's memory is acquired before the query waits for a slot, and the rest at once or not at all: a
	// query that has a slot does not wait for the clients of other queries.
	if err := reservation.ReserveBody(ctx, WritingBytes); err != nil {
		return err
	}
	for _, length := range shortTimes {
		if err := acquire(ctx, q.short); err != nil {
			return err
		}
		t := &turn{queries: q}
		t.timer = time.AfterFunc(length, t.endShort)
		err := q.compute(ctx, reservation, t, compute)
		t.end()
		if !t.mustWait {
			return err
		}
		if t.isLarge {
			break
		}
	}
	if err := acquire(ctx, q.long); err != nil {
		return err
	}
	defer func() { <-q.long }()
	return q.compute(ctx, reservation, nil, compute)
}

// compute calls compute with the memory of a reservation. t is nil for a query with a long slot.
func (q *Queries) compute(ctx context.Context, reservation *budget.Reservation, t *turn,
	compute func(context.Context, *size.Meter) (int, error)) error {
	// Ordinary queries need no more than they begin with, and wait for no large one.
	err := reservation.Build(ctx, q.Budget.SmallBytes(), func(reserve size.Reserve) error {
		meter := &size.Meter{Context: ctx, Reserve: reserve, Limit: int(q.Budget.MaxProfileBytes())}
		if t != nil {
			meter.Turn = t.check
			meter.Reserve = func(n int) error {
				if t.bytes += int64(n); t.bytes > q.Budget.SmallBytes() {
					t.isLarge = true
					if err := t.becomeLong(); err != nil {
						return err
					}
				}
				return reserve(n)
			}
		}
		n, err := compute(ctx, meter)
		if err == nil {
			err = reservation.ResizeBody(int64(n) + WritingBytes)
		}
		return err
	})
	reservation.Built(0)
	return err
}

func acquire(ctx context.Context, slots chan struct{}) error {
	select {
	case slots <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// shortTimes are how long a query may keep the slots with which it begins. On a busy machine, a small query does not
// end in the first one, and must not wait with the large ones then.
var shortTimes = [...]time.Duration{100 * time.Millisecond, time.Second}

// turn is a slot with which a query begins. After its time, and before it takes more memory than small queries do, the
// query goes on with a long slot if one is free. Otherwise it ends, and is computed again in its next turn, which is
// with a long slot at last: while it waits, it holds neither the slot nor memory that small queries need.
type turn struct {
	queries *Queries
	// bytes is the memory that the query has reserved.
	bytes int64
	timer *time.Timer
	// isOver reports that the short slot is given back.
	isOver atomic.Bool
	// isLarge reports that the query needs more memory than small ones do.
	isLarge, isLong, mustWait bool
}

var errWait = errors.New("the query waits for a slot")

func (t *turn) endShort() {
	if !t.isOver.Swap(true) {
		<-t.queries.short
	}
}

func (t *turn) check() error {
	if t.isLong || !t.isOver.Load() {
		return nil
	}
	return t.becomeLong()
}

func (t *turn) becomeLong() error {
	if t.isLong {
		return nil
	}
	t.endShort()
	select {
	case t.queries.long <- struct{}{}:
		t.isLong = true
		return nil
	default:
		t.mustWait = true
		return errWait
	}
}

func (t *turn) end() {
	t.timer.Stop()
	t.endShort()
	if t.isLong {
		<-t.queries.long
	}
}

// Error is an error with its status in HTTP and what to do next.
type Error struct {
	Status        int
	Message, Hint string
	// Cause is what the hint of a protocol can depend on; nil if there is none.
	Cause error
}

func (e *Error) Error() string { return e.Message }

func (e *Error) Unwrap() error { return e.Cause }

// BadRequest returns an error of a query that is at fault.
func BadRequest(message, hint string) error {
	return &Error{Status: http.StatusBadRequest, Message: message, Hint: hint}
}

// NothingFound returns the error of a selection without profiles. A hint has the time of those that there are, as shown
// writes it.
func NothingFound(ctx context.Context, from *answers.Querier, sel *model.Selection,
	shown func(from, until int64) string) error {
	infos, err := from.Catalog(ctx, sel.Service, sel.Meter)
	if err != nil {
		return err
	}
	for _, p := range infos {
		if p.Profile == sel.Profile {
			message := "no profile is in the selected time"
			if len(sel.Attributes) > 0 {
				message = "no profile in the selected time has these attributes"
			}
			return &Error{Status: http.StatusNotFound, Message: message, Hint: "there are profiles " + shown(p.From, p.Until)}
		}
	}
	return model.ErrNothing
}

const smallerHint = "choose a shorter time or one sample type (type=<type>), or add a filter (attr.<key>=<value>)"

// Error returns an error of Run with its status and a hint.
func (q *Queries) Error(err error) *Error {
	var known *Error
	var unread *httpserver.BodyError
	var tooLarge *budget.TooLargeError
	switch {
	case errors.As(err, &known):
		return known
	case errors.As(err, &unread):
		return &Error{Status: unread.Status, Message: fmt.Sprintf("read the request: %s", err)}
	case errors.Is(err, model.ErrNothing):
		return &Error{http.StatusNotFound, err.Error(), "GET /api/profiles lists what there is", model.ErrNothing}
	case errors.Is(err, model.ErrTooLarge):
		return &Error{http.StatusBadRequest, err.Error(), smallerHint, model.ErrTooLarge}
	case errors.As(err, &tooLarge):
		return &Error{http.StatusBadRequest, fmt.Sprintf(
			"%s: it needs at least %d bytes of memory, and the memory limit of this process leaves %d for one query",
			model.ErrTooLarge, tooLarge.Need, tooLarge.Limit), smallerHint, model.ErrTooLarge}
	case errors.Is(err, budget.ErrBusy):
		return &Error{Status: http.StatusServiceUnavailable,
			Message: "other queries take all the memory that queries may use at the moment", Hint: "try again"}
	case errors.Is(err, store.ErrUnreadable):
		return &Error{http.StatusServiceUnavailable, err.Error(),
			"try again; if it stays, look at the disk, its permissions and the limit of open files", store.ErrUnreadable}
	case errors.Is(err, answers.ErrEngine):
		return &Error{http.StatusServiceUnavailable, err.Error(),
			"look whether ClickHouse runs, and at `clickhouse` of the exporter profile_store", answers.ErrEngine}
	case errors.Is(err, context.DeadlineExceeded):
		hint := "try again, or choose a shorter time"
		if q.TimeoutHint != "" {
			hint += "; " + q.TimeoutHint
		}
		return &Error{Status: http.StatusServiceUnavailable, Message: fmt.Sprintf("the query took longer than %s", q.Timeout),
			Hint: hint}
	case errors.Is(err, context.Canceled):
		return &Error{Status: http.StatusServiceUnavailable, Message: "the server is stopping", Hint: "try again"}
	default:
		return &Error{Status: http.StatusBadRequest, Message: err.Error()}
	}
}
