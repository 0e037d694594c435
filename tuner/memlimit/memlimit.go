// Package memlimit limits the memory of a process. Work that needs much memory asks a
// [Limit] for room before it begins. The engine and the faces of a server share one.
package memlimit

import (
	"context"
	"math"
	"math/rand/v2"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"time"
)

// Limit is a limit on memory. A nil Limit refuses nothing.
type Limit struct {
	bytes   int64
	used    func() int64
	collect func()

	mu       sync.Mutex
	reserved int64
	next     time.Time // when garbage may be collected again
}

// The shares of the limit that each kind of work may fill. Watches get the least, because they
// can wait. Admins can act when workers cannot. Reading a study stops when it does not fit.
const (
	ShareWatch  = 0.6
	ShareWorker = 0.75
	ShareAdmin  = 0.85
	ShareLoad   = 0.9
)

// New returns a limit in bytes on the memory of the process. It returns nil, which means
// no limit, unless bytes is positive.
func New(bytes int64) *Limit {
	if bytes <= 0 {
		return nil
	}
	return Of(bytes, used, runtime.GC)
}

// Of returns a limit in bytes on memory that used measures, garbage included. collect
// collects the garbage. Both are called under a lock.
func Of(bytes int64, used func() int64, collect func()) *Limit {
	return &Limit{bytes: bytes, used: used, collect: collect}
}

// Bytes returns the limit, which is the largest number for a nil Limit.
func (m *Limit) Bytes() int64 {
	if m == nil {
		return math.MaxInt64
	}
	return m.bytes
}

// Enter reserves bytes for work that is about to begin, until leave is called. ok is
// false if more than a share of the limit would be in use. Garbage counts as used.
// Enter therefore collects garbage before it refuses, for at most a tenth of the time.
func (m *Limit) Enter(bytes int64, share float64) (leave func(), ok bool) {
	if m == nil {
		return func() {}, true
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.fits(bytes, share) {
		if !m.tidy() || !m.fits(bytes, share) {
			return nil, false
		}
	}
	m.reserved += bytes
	return sync.OnceFunc(func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.reserved -= bytes
	}), true
}

// tidy collects garbage unless it did so just before. The lock is held.
func (m *Limit) tidy() bool {
	if time.Now().Before(m.next) {
		return false
	}
	begun := time.Now()
	m.collect()
	m.next = time.Now().Add(max(time.Second, 10*time.Since(begun)))
	return true
}

// Settle waits until garbage has been collected after work that was refused. It is for
// the next work of the same call.
func (m *Limit) Settle(ctx context.Context) error {
	m.mu.Lock()
	wait := time.Until(m.next)
	m.mu.Unlock()
	select {
	case <-time.After(wait):
	case <-ctx.Done():
		return ctx.Err()
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.tidy()
	return nil
}

// Await is Enter for a watch, and waits until there is room. It reserves at most an
// eighth of the limit.
func (m *Limit) Await(ctx context.Context, bytes int64) (leave func(), err error) {
	if m != nil {
		bytes = min(bytes, m.bytes/8)
	}
	for {
		if leave, ok := m.Enter(bytes, ShareWatch); ok {
			return leave, nil
		}
		select {
		case <-time.After(10*time.Millisecond + rand.N(40*time.Millisecond)):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// fits reports whether bytes fit into a share of the limit. The lock is held.
func (m *Limit) fits(bytes int64, share float64) bool {
	return float64(m.used()+m.reserved+bytes) <= share*float64(m.bytes)
}

// Short reports whether watches have to wait.
func (m *Limit) Short() bool {
	if m == nil {
		return false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return !m.fits(1<<20, ShareWatch)
}

// used returns the bytes that the process has from the system and uses, including
// garbage. Mapped files do not count.
func used() int64 {
	samples := []metrics.Sample{
		{Name: "/memory/classes/total:bytes"},
		{Name: "/memory/classes/heap/released:bytes"},
		{Name: "/memory/classes/heap/free:bytes"},
	}
	metrics.Read(samples)
	return int64(samples[0].Value.Uint64() - samples[1].Value.Uint64() - samples[2].Value.Uint64())
}

const (
	garbagePercent = 40       // of the live heap
	leastGarbage   = 16 << 20 // bytes, that of some 400 calls
	leastHeap      = 4 << 20  // which the runtime takes a smaller heap for
)

// PaceCollector makes the garbage collector of a server wait for garbage of 40 % of the live
// heap, and at least for 16 MiB or an eighth of the limit on memory, unless $GOGC is set. Most of
// the memory of a server is trials, which never become garbage. Waiting for as much garbage again
// would double its size, and a server with few trials would collect after every few calls.
func PaceCollector() {
	if os.Getenv("GOGC") != "" {
		return
	}
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(live)
	least := min(leastGarbage, debug.SetMemoryLimit(-1)/8)
	heap := max(int64(live[0].Value.Uint64()), leastHeap)
	debug.SetGCPercent(max(garbagePercent, int(100*least/heap)))
	runtime.AddCleanup(new([16]byte), func(int) { PaceCollector() }, 0) // at the next collection
}
