// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package scrape

import (
	"sync"
	"time"

	"go.uber.org/zap"
)

const (
	// logLines is how many changes of its targets a job tells one by one in logWindow; it counts the rest.
	logLines  = 10
	logWindow = time.Minute
)

// scrapeNews is a change of an endpoint's trouble.
type scrapeNews struct {
	trouble    string
	begins     bool // or else it is over
	backedOff  bool
	worthALine bool
}

// scrapeLog tells the changes of a job's targets: when something fails, fails otherwise, and works
// again. When a network breaks, thousands of targets do at once, and a line for each would bury the rest.
type scrapeLog struct {
	logger *zap.Logger
	now    func() time.Time

	mu    sync.Mutex
	since time.Time // of the current window
	lines int
	held  map[heldNews]int
}

type heldNews struct {
	trouble string
	begins  bool
}

func newScrapeLog(logger *zap.Logger) *scrapeLog {
	return &scrapeLog{logger: logger, now: time.Now, held: map[heldNews]int{}}
}

// note tells one change, or counts it for the summary.
func (l *scrapeLog) note(news scrapeNews, kind, shown string, err error) {
	if !news.worthALine {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.turn(l.now())
	if l.lines++; l.lines > logLines {
		l.held[heldNews{news.trouble, news.begins}]++
		return
	}
	fields := []zap.Field{zap.String("profile", kind), zap.String("url", shown), zap.String("reason", news.trouble)}
	switch {
	case !news.begins:
		l.logger.Info("scrape succeeds again", fields...)
	case news.backedOff:
		l.logger.Warn("target does not serve this profile; asking less often", append(fields, zap.Error(err))...)
	default:
		l.logger.Warn("scrape failed; suppressing repeats until the reason changes", append(fields, zap.Error(err))...)
	}
}

// flush tells what was held back, once its window is over.
func (l *scrapeLog) flush(now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.turn(now)
}

// close tells what was held back.
func (l *scrapeLog) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.summarise()
}

func (l *scrapeLog) turn(now time.Time) {
	if now.Sub(l.since) < logWindow {
		return
	}
	l.summarise()
	l.since, l.lines = now, 0
}

func (l *scrapeLog) summarise() {
	for news, n := range l.held {
		fields := []zap.Field{zap.Int("targets", n), zap.String("reason", news.trouble)}
		if news.begins {
			l.logger.Warn("scrapes of further targets failed", fields...)
		} else {
			l.logger.Info("scrapes of further targets succeed again", fields...)
		}
	}
	clear(l.held)
}
