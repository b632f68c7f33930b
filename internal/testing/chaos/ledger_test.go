// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package chaos

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp"
)

const (
	// sampleKey is the label or attribute of each sample: sender/request/sample.
	sampleKey = "chaos.sample"
	// samplesPerRequest is small, so that the ledger of hours fits into memory.
	samplesPerRequest = 4
)

// ledger records of each sample whether it was acknowledged, and how often it arrived.
type ledger struct {
	mu      sync.Mutex
	senders map[string][]entry
	// acknowledged is the number of acknowledged samples.
	acknowledged int
	// unknown are samples that nobody sent.
	unknown []string
}

// entry is one request of a sender.
type entry struct {
	attempts     uint8
	acknowledged bool
	arrived      [samplesPerRequest]uint8
}

func newLedger() *ledger { return &ledger{senders: map[string][]entry{}} }

func sampleID(sender string, request, sample int) string {
	return fmt.Sprintf("%s/%d/%d", sender, request, sample)
}

// sending records that a request is about to be sent, perhaps again.
func (l *ledger) sending(sender string, request int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(l.senders[sender]) <= request {
		l.senders[sender] = append(l.senders[sender], entry{})
	}
	if e := &l.senders[sender][request]; e.attempts < 255 {
		e.attempts++
	}
}

func (l *ledger) acknowledge(sender string, request int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.senders[sender][request].acknowledged = true
	l.acknowledged += samplesPerRequest
}

func (l *ledger) acknowledgedSoFar() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.acknowledged
}

// add records the samples of a message that arrived.
func (l *ledger) add(pd pprofile.Profiles) {
	d := pd.Dictionary()
	ids := map[int32]string{}
	for i, attribute := range d.AttributeTable().All() {
		if d.StringTable().At(int(attribute.KeyStrindex())) == sampleKey {
			ids[int32(i)] = attribute.Value().Str()
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for p := range otlp.Profiles(pd) {
		for _, sample := range p.Samples().All() {
			for _, i := range sample.AttributeIndices().All() {
				if id, ok := ids[i]; ok {
					l.arrive(id)
				}
			}
		}
	}
}

func (l *ledger) arrive(id string) {
	parts := strings.Split(id, "/")
	if len(parts) == 3 {
		request, err1 := strconv.Atoi(parts[1])
		sample, err2 := strconv.Atoi(parts[2])
		if err1 == nil && err2 == nil && request < len(l.senders[parts[0]]) && sample < samplesPerRequest {
			if n := &l.senders[parts[0]][request].arrived[sample]; *n < 255 {
				*n++
			}
			return
		}
	}
	l.unknown = append(l.unknown, id)
}

// balance is the summary of a ledger, in samples.
type balance struct {
	sent, acknowledged, arrived int
	// missing samples were acknowledged and did not arrive. duplicates arrived more than once; unexplained are duplicates
	// that their sender sent only once.
	missing, duplicates, unexplained int
	// examples name a few of the missing and the unexplained.
	examples []string
}

func (l *ledger) balance() (b balance) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for sender, entries := range l.senders {
		for request, e := range entries {
			for sample, arrived := range e.arrived {
				b.sent++
				b.arrived += min(int(arrived), 1)
				if e.acknowledged {
					b.acknowledged++
				}
				missing := e.acknowledged && arrived == 0
				if missing {
					b.missing++
				}
				if arrived > 1 {
					b.duplicates++
				}
				unexplained := arrived > 1 && e.attempts == 1
				if unexplained {
					b.unexplained++
				}
				if (missing || unexplained) && len(b.examples) < 5 {
					b.examples = append(b.examples, fmt.Sprintf("%s arrived %d times", sampleID(sender, request, sample), arrived))
				}
			}
		}
	}
	return b
}

func (b balance) String() string {
	return fmt.Sprintf("%d samples sent, %d acknowledged, %d arrived, %d missing, %d duplicates (%d of them sent once) %v",
		b.sent, b.acknowledged, b.arrived, b.missing, b.duplicates, b.unexplained, b.examples)
}

// repeats is who can have caused duplicates.
type repeats bool

const (
	// bySenders means only senders that repeated a request.
	bySenders repeats = false
	// byNodes means nodes, too: they were killed, or did not get an answer.
	byNodes repeats = true
)

// requireDelivered waits until every acknowledged sample has arrived, or nothing more arrives, and checks the
// duplicates.
func (l *ledger) requireDelivered(t testing.TB, by repeats) balance {
	t.Helper()
	b, lastArrival := l.balance(), time.Now()
	for b.missing > 0 && time.Since(lastArrival) < deliveryTimeout {
		time.Sleep(200 * time.Millisecond)
		now := l.balance()
		if now.arrived > b.arrived {
			lastArrival = time.Now()
		}
		b = now
	}
	t.Log(b)
	require.Positive(t, b.acknowledged, "nothing was acknowledged")
	require.Zero(t, b.missing, "acknowledged but not delivered: %v", b)
	if by == bySenders {
		require.Zero(t, b.unexplained, "duplicates that no sender caused: %v", b)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	require.Empty(t, l.unknown, "samples that nobody sent")
	return b
}

// deliveryTimeout is generous: the machine may be busy with something else.
const deliveryTimeout = 30 * time.Second
