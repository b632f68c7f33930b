// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package lookup

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/otelcol-profiles/otelcol-profiles/internal/service/await"
	"github.com/otelcol-profiles/otelcol-profiles/internal/symbols"
	"github.com/otelcol-profiles/otelcol-profiles/processor/symbolizeprocessor/internal/sources"
)

// Reason is why an address has no function.
type Reason int

// The reasons for which an address has no function, the most specific last.
const (
	Pending     Reason = iota // a search for it is running or queued
	NotAFile                  // the mapping is not of a file, or there is no mapping
	NotFound                  // no source has the file
	QueueFull                 // too many are waiting: the next message requests it again
	NoBuildID                 // the mapping has no build id
	Mismatch                  // the file is of another build
	NoSymbol                  // the file has no function there
	TooLarge                  // the file or its tables are above a limit
	Malformed                 // the file's tables are malformed
	Unavailable               // a server or the file system failed
	NumReasons  int    = iota
)

var reasonNames = [NumReasons]string{
	"pending", "not_a_file", "not_found", "queue_full", "no_build_id", "mismatch", "no_symbol", "too_large", "malformed",
	"unavailable",
}

func (r Reason) String() string { return reasonNames[r] }

// Config configures a Resolver.
type Config struct {
	// Lines adds inlined calls, files and line numbers, also from DWARF.
	Lines bool `mapstructure:"lines"`
	// Demangle is how much of a demangled name is kept.
	Demangle symbols.DemangleStyle `mapstructure:"demangle"`
	// CacheBytes bounds the cache of addresses.
	CacheBytes int64 `mapstructure:"cache_bytes"`

	// The bounds below have no keys; tests lower them.

	// Workers is how many lookups run at the same time, and how many downloads.
	Workers int `mapstructure:"-"`
	// QueueSize is how many modules may wait for a lookup, and how many for a download.
	QueueSize int `mapstructure:"-"`
	// MaxModules is how many modules are remembered.
	MaxModules int `mapstructure:"-"`
	// MaxPendingAddresses is how many addresses of one module may wait.
	MaxPendingAddresses int `mapstructure:"-"`
	// MaxOpenFiles bounds the files that are held open between lookups.
	MaxOpenFiles int `mapstructure:"-"`
	// KeepOpen is how long a file is held open after its last lookup.
	KeepOpen time.Duration `mapstructure:"-"`
	// RetryInterval is the time after which a module without symbols is searched again.
	RetryInterval time.Duration `mapstructure:"-"`
}

// Resolver resolves addresses. It is safe for concurrent use.
type Resolver struct {
	config Config
	finder *sources.Finder
	// observe is called for each source that was tried.
	observe func(kind sources.Kind, took time.Duration)
	cache   *cache
	// queue has the modules to search, downloads those that wait for a server. Servers are slow, so they keep nothing else
	// waiting.
	queue, downloads chan *Module
	stop             context.Context
	cancel           context.CancelFunc
	done             sync.WaitGroup

	mu      sync.Mutex
	modules *simplelru.LRU[Key, *Module]
	lastID  uint64
}

// Key identifies a module. The path and the process matter only if there is no build id.
type Key struct {
	IDs  symbols.IDs
	Path string
	PID  int64
}

// Module is a file that mappings refer to.
type Module struct {
	key  Key
	id   uint64
	path string

	mu sync.Mutex
	// isForgotten reports that the Resolver has dropped the module for others.
	isForgotten bool

	wanted map[symbols.Position]struct{}
	pids   []int64
	isBusy bool // queued, or a worker has it
	round  uint32
	// missing is why the module has no symbols at all, Pending if it may have some. From retryAt on, if that is set, the
	// module may be searched again.
	missing Reason
	retryAt time.Time
	// finished is closed when the current round ends.
	finished chan struct{}

	// unresolved is how many locations of messages have no function.
	unresolved int

	opened  [sources.NumKinds]opened
	lastUse time.Time
	// suspended is the search that goes on after a download.
	suspended *search
}

// New starts a Resolver, which Close ends. observe is called for each source that was tried.
func New(config Config, finder *sources.Finder, observe func(kind sources.Kind, took time.Duration)) *Resolver {
	r := &Resolver{
		config:    config,
		finder:    finder,
		observe:   observe,
		cache:     newCache(config.CacheBytes),
		queue:     make(chan *Module, config.QueueSize),
		downloads: make(chan *Module, config.QueueSize),
	}
	r.modules, _ = simplelru.NewLRU(max(config.MaxModules, 1), forget) // a size below 1 is the only error
	r.stop, r.cancel = context.WithCancel(context.Background())
	for range config.Workers {
		r.done.Go(r.work)
		r.done.Go(r.download)
	}
	r.done.Go(r.closeIdle)
	return r
}

// Close ends the workers. A worker that hangs in a file system is left behind when ctx ends.
func (r *Resolver) Close(ctx context.Context) error {
	r.cancel()
	err := await.Return(ctx, func() {
		r.done.Wait()
		for len(r.queue) > 0 {
			(<-r.queue).close()
		}
		r.eachIdle((*Module).close)
	})
	if err != nil {
		return context.Cause(ctx)
	}
	return nil
}

// Module returns the module of a mapping. path is its filename.
func (r *Resolver) Module(k Key, path string) *Module {
	r.mu.Lock()
	defer r.mu.Unlock()
	if m, ok := r.modules.Get(k); ok {
		return m
	}
	// The strings are parts of a message, which is not kept for them.
	path = strings.Clone(path)
	k.Path = strings.Clone(k.Path)
	k.IDs = symbols.IDs{GNU: strings.Clone(k.IDs.GNU), Go: strings.Clone(k.IDs.Go), Htlhash: strings.Clone(k.IDs.Htlhash)}
	r.lastID++
	m := &Module{key: k, id: r.lastID, path: path}
	r.modules.Add(k, m)
	return m
}

// forget is called with the least recently used module, which makes room for another. Resolver.mu is held. A worker
// that has the module keeps it.
func forget(_ Key, m *Module) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.isForgotten = true
	if !m.isBusy {
		m.close()
	}
}

// Lookup returns the answer for an address, or nil if it has to be requested.
func (r *Resolver) Lookup(m *Module, at symbols.Position) *Answer {
	a := r.cache.get(key{module: m.id, address: at})
	if a == nil || len(a.Frames) > 0 {
		return a
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if a.round != m.round || m.isRetryDue(time.Now()) {
		return nil
	}
	return a
}

// isRetryDue reports whether the module may be searched again. m.mu is held.
func (m *Module) isRetryDue(now time.Time) bool { return !m.retryAt.IsZero() && !now.Before(m.retryAt) }

// Missing returns why a module has no symbols at all, and whether it has none. Requests for its addresses are useless
// then.
func (r *Resolver) Missing(m *Module) (Reason, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.missing, m.missing != Pending && time.Now().Before(m.retryAt)
}

// Request queues addresses of a module for a worker. pids are processes that have it mapped. It does not wait: it
// returns why the addresses are missing, and, if that is Pending, a channel that is closed when the search has ended.
func (r *Resolver) Request(m *Module, at []symbols.Position, pids []int64) (Reason, <-chan struct{}) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.missing != Pending {
		if time.Now().Before(m.retryAt) {
			return m.missing, nil
		}
		m.missing = Pending
	}
	if len(m.wanted) >= r.config.MaxPendingAddresses {
		return QueueFull, nil
	}
	if !m.isBusy {
		m.finished = make(chan struct{})
		select {
		case r.queue <- m:
			m.isBusy = true
		default:
			return QueueFull, nil
		}
	}
	if m.wanted == nil {
		m.wanted = map[symbols.Position]struct{}{}
	}
	for _, a := range at {
		if len(m.wanted) >= r.config.MaxPendingAddresses {
			break
		}
		m.wanted[a] = struct{}{}
	}
	const maxPIDs = 4
	for _, pid := range pids {
		if slices.Contains(m.pids, pid) {
			continue
		}
		if len(m.pids) >= maxPIDs { // the processes seen last are most likely still running
			m.pids = m.pids[1:]
		}
		m.pids = append(m.pids, pid)
	}
	return Pending, m.finished
}

// AddUnresolved counts a location without a function.
func (m *Module) AddUnresolved() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.unresolved++
}

// Unresolved is a module without symbols, and the number of its locations in messages.
type Unresolved struct {
	IDs       symbols.IDs
	Path      string
	Reason    Reason
	Locations int
}

func (r *Resolver) allModules() []*Module {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.modules.Values()
}

// DrainUnresolved returns the n modules with most unresolved locations, and the number of all such locations. It resets
// the counts.
func (r *Resolver) DrainUnresolved(n int) (top []Unresolved, all int) {
	for _, m := range r.allModules() {
		m.mu.Lock()
		u := Unresolved{IDs: m.key.IDs, Path: m.path, Reason: m.missing, Locations: m.unresolved}
		m.unresolved = 0
		m.mu.Unlock()
		if u.Locations == 0 {
			continue
		}
		if u.Reason == Pending {
			u.Reason = NoSymbol // there is a file, but it lacks some addresses
		}
		all += u.Locations
		top = append(top, u)
	}
	slices.SortFunc(top, func(a, b Unresolved) int {
		return cmp.Or(-cmp.Compare(a.Locations, b.Locations), cmp.Compare(a.Path, b.Path),
			cmp.Compare(a.IDs.String(), b.IDs.String()))
	})
	return top[:min(n, len(top))], all
}

// Sizes are the sizes of what a Resolver holds.
type Sizes struct {
	CacheEntries, CacheBytes int64
	Modules, Queued          int64
	OpenFiles, OpenBytes     int64
}

// Sizes returns what the Resolver holds.
func (r *Resolver) Sizes() (s Sizes) {
	s.CacheEntries, s.CacheBytes = r.cache.size()
	s.Queued = int64(len(r.queue) + len(r.downloads))
	s.Modules = int64(len(r.allModules()))
	r.eachIdle(func(m *Module) {
		files, bytes := m.size()
		s.OpenFiles += files
		s.OpenBytes += bytes
	})
	return s
}
