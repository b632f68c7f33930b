// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package goheap

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"unsafe"
)

// Kind is which list a bucket is of. The numbers are the runtime's.
type Kind uint64

// The kinds.
const (
	Memory Kind = 1 + iota
	Block
	Mutex
)

var (
	// ErrMalformed is returned for a list that is not as Go's runtime writes it.
	ErrMalformed = errors.New("the list of buckets is malformed")
	// ErrTooManyBuckets is returned for a list above the limit.
	ErrTooManyBuckets = errors.New("too many buckets")
	// ErrChanging is returned if a bucket changed each time that it was read.
	ErrChanging = errors.New("a bucket is changing")
)

// The layout of runtime.bucket in runtime/mprof.go: next, allnext, typ, hash, size and nstk, then the stack, then the
// record.
const (
	headerBytes   = 6 * 8
	allNextField  = 1 * 8
	typeField     = 2 * 8
	hashField     = 3 * 8
	sizeField     = 4 * 8
	lengthField   = 5 * 8
	memoryRecord  = 16 * 8 // active and three future cycles, each of allocs, frees, alloc_bytes and free_bytes
	waitingRecord = 2 * 8  // count, a float64, and cycles
	// maxStack is the runtime's limit.
	maxStack = 1024
)

// Bucket is a record of the runtime. Memory has the objects and bytes that were allocated and freed, Block and Mutex
// have waits and their ticks. These are the runtime's numbers, of sampled objects alone.
type Bucket struct {
	// Stack has the return addresses in the process, innermost first. It is nil once the bucket has its locations, which
	// are those of Names.
	Stack     []uint64
	locations []uint32
	// Size is the size of the objects of Memory.
	Size          uint64
	Allocs, Frees int64
	Waits         float64
	Ticks         int64
	kind          Kind
	hash          uint64
	length        uint64
	// future are the cycles of Memory that have not been published.
	futureAllocs, futureFrees int64
}

// Profile has the buckets of a list.
type Profile struct {
	Kind    Kind
	Buckets []*Bucket
	// Rate is the average of bytes from one sampled object to the next, of Memory.
	Rate int64
	// Scale is the factor of the waits and ticks.
	Scale int64
	// TicksAreNanos means that ticks are nanoseconds.
	TicksAreNanos bool
}

// Reader reads the lists of one process.
type Reader struct {
	Program *Program
	// Bias is the distance from the addresses in the file to those of the process.
	Bias uint64
	// MaxBuckets bounds each list.
	MaxBuckets int
	// Reserve, if set, is asked for the bytes that buckets take, before they do. Read returns its error.
	Reserve func(bytes int) error
	// Keep, if set, is asked whether a bucket of that many bytes may be kept until the next Read. The runtime never
	// changes the stack of a bucket, so that only the numbers of those that are kept are read again.
	Keep func(bytes int) bool
	kept map[uint64]*Bucket
}

// Forget forgets the buckets that were kept, and returns the bytes that they had.
func (r *Reader) Forget() (bytes int) {
	for _, b := range r.kept {
		bytes += keptBytes(b)
	}
	r.kept = nil
	return bytes
}

// keptBytes is the memory of a kept bucket.
func keptBytes(b *Bucket) int {
	const entry = 32 // in a map
	return int(unsafe.Sizeof(*b)) + entry + 4*int(b.length)
}

// OffError is returned for a program that does not record its allocations.
type OffError struct {
	// IsNeverAsked means that nothing in the program can read the profile, and the linker switched it off.
	IsNeverAsked bool
}

func (e *OffError) Error() string {
	if e.IsNeverAsked {
		return "the program records no allocations: nothing in it can read them, hence Go's linker switched it off; " +
			"import net/http/pprof to switch it on, which needs no server"
	}
	return "the program records no allocations: it sets runtime.MemProfileRate to 0"
}

// Read reads the lists that the process has. A list without buckets is left out. Off is an *OffError if the process
// does not record its allocations; then it may have the other lists.
func (r *Reader) Read(from io.ReaderAt) (profiles []Profile, off, err error) {
	m := newMemory(from)
	rate, err := m.word(r.Program.memoryRate + r.Bias)
	if err != nil {
		return nil, nil, fmt.Errorf("read runtime.MemProfileRate: %w", err)
	}
	if rate > math.MaxInt64/2 {
		return nil, nil, fmt.Errorf("runtime.MemProfileRate is %d: %w", int64(rate), ErrMalformed)
	}
	if rate == 0 {
		off = &OffError{IsNeverAsked: r.Program.isNeverAsked}
	}
	heads, err := r.heads(m)
	if err != nil {
		return nil, off, err
	}
	for kind := Memory; kind <= Mutex; kind++ {
		if heads[kind] == 0 || kind == Memory && rate == 0 {
			continue
		}
		p := Profile{Kind: kind, Rate: int64(rate), Scale: 1, TicksAreNanos: r.Program.ticksAreNanos}
		if kind == Mutex && r.Program.mutexRate != 0 {
			fraction, err := m.word(r.Program.mutexRate + r.Bias)
			if err != nil || fraction > math.MaxInt32 {
				return nil, off, fmt.Errorf("read the rate of the mutex profile: %w", errors.Join(err, ErrMalformed))
			}
			p.Scale = int64(fraction)
		}
		if p.Buckets, err = r.list(m, kind, heads[kind]); err != nil {
			return nil, off, err
		}
		profiles = append(profiles, p)
	}
	return profiles, off, nil
}

// heads returns the first bucket of each list. The variables in question are few, and other than lists they do not
// point to anything with the hash of a bucket.
func (r *Reader) heads(m *memory) (heads [Mutex + 1]uint64, err error) {
	for _, list := range r.Program.lists {
		address, err := m.word(list + r.Bias)
		if err != nil {
			return heads, fmt.Errorf("read a variable of the runtime: %w", err)
		}
		if address == 0 {
			continue
		}
		first, _, err := r.bucket(m, address)
		if errors.Is(err, ErrChanging) {
			return heads, err
		}
		if err == nil {
			if heads[first.kind] != 0 {
				return heads, fmt.Errorf("two lists of one kind: %w", ErrMalformed)
			}
			heads[first.kind] = address
		}
	}
	return heads, nil
}

// list reads a list. The program goes on meanwhile: new buckets are put before its head, and existing ones stay where
// they are.
func (r *Reader) list(m *memory, want Kind, address uint64) (buckets []*Bucket, err error) {
	frames, earlier := 0, uint64(0)
	for address != 0 {
		switch n := len(buckets); {
		case n >= r.MaxBuckets || frames > meanFrames*r.MaxBuckets:
			return nil, fmt.Errorf("more than %d, or %d frames: %w", r.MaxBuckets, meanFrames*r.MaxBuckets, ErrTooManyBuckets)
		case address == earlier:
			return nil, fmt.Errorf("bucket %d at %#x is in the list twice: %w", n, address, ErrMalformed)
		case n&(n-1) == 0: // a ring comes back to a bucket whose number is a power of two
			earlier = address
		}
		bucket, next, err := r.bucket(m, address)
		if err == nil && bucket.kind != want {
			err = fmt.Errorf("kind %d in the list of %d: %w", bucket.kind, want, ErrMalformed)
		}
		if err != nil {
			return nil, fmt.Errorf("bucket %d at %#x: %w", len(buckets), address, err)
		}
		if err := r.reserve(bucket); err != nil {
			return nil, err
		}
		frames += int(bucket.length)
		buckets = append(buckets, bucket)
		address = next
	}
	if want == Memory {
		publish(buckets)
	}
	return buckets, nil
}

// meanFrames is how many frames stacks may have on average. The runtime keeps at most 128 of a stack unless it is told
// otherwise.
const meanFrames = 64

func (r *Reader) reserve(b *Bucket) error {
	if r.Reserve == nil || b.Stack == nil {
		return nil
	}
	return r.Reserve(8*len(b.Stack) + keptBytes(b))
}

// publish adds the cycles that are not published yet if there has been no collection of garbage, as the runtime does
// when it is asked.
func publish(buckets []*Bucket) {
	for i := range buckets {
		if buckets[i].Allocs != 0 || buckets[i].Frees != 0 {
			return
		}
	}
	for i := range buckets {
		buckets[i].Allocs, buckets[i].Frees = buckets[i].futureAllocs, buckets[i].futureFrees
	}
}

// bucket reads and checks a bucket. Of one that is kept it reads the numbers.
func (r *Reader) bucket(m *memory, address uint64) (b *Bucket, next uint64, err error) {
	if address%8 != 0 {
		return nil, 0, fmt.Errorf("the address is odd: %w", ErrMalformed)
	}
	header, err := m.bytes(address, headerBytes)
	if err != nil {
		return nil, 0, err
	}
	field := func(at int) uint64 { return binary.LittleEndian.Uint64(header[at:]) }
	next = field(allNextField)
	kept := r.kept[address]
	b = kept
	kind, hash, size, length := Kind(field(typeField)), field(hashField), field(sizeField), field(lengthField)
	if b == nil || b.kind != kind || b.hash != hash || b.Size != size || b.length != length {
		b = &Bucket{kind: kind, hash: hash, Size: size, length: length}
		if err := b.readStack(m, address+headerBytes); err != nil {
			return nil, 0, err
		}
		if kept == nil && r.Keep != nil && r.Keep(keptBytes(b)) {
			if r.kept == nil {
				r.kept = map[uint64]*Bucket{}
			}
			r.kept[address] = b
		}
	}
	return b, next, b.readRecord(m, address+headerBytes+8*b.length)
}

// readStack reads the stack, and checks it by its hash.
func (b *Bucket) readStack(m *memory, address uint64) error {
	if b.kind < Memory || b.kind > Mutex || b.length > maxStack || (b.kind == Memory) != (b.Size != 0) {
		return fmt.Errorf("kind %d, %d frames, size %d: %w", b.kind, b.length, b.Size, ErrMalformed)
	}
	stack, err := m.bytes(address, int(8*b.length))
	if err != nil {
		return err
	}
	b.Stack = make([]uint64, b.length)
	for i := range b.Stack {
		b.Stack[i] = binary.LittleEndian.Uint64(stack[8*i:])
	}
	if hashOf(b.Stack, b.Size) != b.hash {
		return fmt.Errorf("the hash is not that of the stack: %w", ErrMalformed)
	}
	return nil
}

// hashOf is the hash that runtime.stkbucket computes.
func hashOf(stack []uint64, size uint64) (h uint64) {
	for _, word := range stack {
		h += word
		h += h << 10
		h ^= h >> 6
	}
	h += size
	h += h << 10
	h ^= h >> 6
	h += h << 3
	h ^= h >> 11
	return h
}

// readRecord reads the numbers. They are read again if they contradict each other, as they do for nanoseconds while
// they change.
func (b *Bucket) readRecord(m *memory, address uint64) error {
	const attempts = 5
	size := memoryRecord
	if b.kind != Memory {
		size = waitingRecord
	}
	read := m.bytes
	for range attempts {
		record, err := read(address, size)
		if err != nil {
			return err
		}
		if b.kind == Memory && b.setMemory(record) || b.kind != Memory && b.setWaiting(record) {
			return nil
		}
		read = m.read
	}
	return ErrChanging
}

func (b *Bucket) setMemory(record []byte) bool {
	word := func(i int) uint64 { return binary.LittleEndian.Uint64(record[8*i:]) }
	maxObjects := math.MaxInt64 / 8 / b.Size // so that sums do not overflow
	var allocs, frees [4]uint64
	for cycle := range allocs {
		allocs[cycle], frees[cycle] = word(4*cycle), word(4*cycle+1)
		if allocs[cycle] > maxObjects || frees[cycle] > maxObjects ||
			word(4*cycle+2) != allocs[cycle]*b.Size || word(4*cycle+3) != frees[cycle]*b.Size {
			return false
		}
	}
	b.Allocs, b.Frees = int64(allocs[0]), int64(frees[0])
	b.futureAllocs = int64(allocs[1] + allocs[2] + allocs[3])
	b.futureFrees = int64(frees[1] + frees[2] + frees[3])
	return frees[0] <= allocs[0]
}

func (b *Bucket) setWaiting(record []byte) bool {
	b.Waits = math.Float64frombits(binary.LittleEndian.Uint64(record))
	b.Ticks = int64(binary.LittleEndian.Uint64(record[8:]))
	return b.Waits >= 0 && b.Waits < 1<<62 && b.Ticks >= 0
}
