package tuner

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"runtime/metrics"
	"sync"
	"time"

	"github.com/bkbtuner/bkb/internal/planted"
	"github.com/bkbtuner/bkb/tuner/study"
)

// Memory holds a process to a limit. Work that needs much memory asks for room before it
// begins, and is refused if there is none. A nil Memory has room for all.
type Memory struct {
	limit   int64
	used    func() int64
	collect func()

	mu       sync.Mutex
	reserved int64
	next     time.Time // when garbage may be collected again
}

// The shares of the limit up to which there is room. Watches can wait, and admins act
// when workers cannot. A study that is read and does not fit is given up.
const (
	ShareWatch  = 0.6
	ShareWorker = 0.75
	ShareAdmin  = 0.85
	shareLoad   = 0.9
)

// NewMemory returns the memory of the process, of which at most limit bytes are to be
// used. It returns nil, for no limit, unless limit is positive.
func NewMemory(limit int64) *Memory {
	if limit <= 0 {
		return nil
	}
	return &Memory{limit: limit, used: usedMemory, collect: runtime.GC}
}

// Limit returns the limit in bytes.
func (m *Memory) Limit() int64 {
	if m == nil {
		return math.MaxInt64
	}
	return m.limit
}

// Enter reserves bytes for work that is about to begin, until leave is called. ok is
// false if more than a share of the limit would be in use. Garbage counts as used, so
// Enter collects it first, at most for a tenth of the time.
func (m *Memory) Enter(bytes int64, share float64) (leave func(), ok bool) {
	if m == nil || planted.Is(planted.MemoryUnchecked) {
		return func() {}, true
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.fits(bytes, share) {
		if time.Now().Before(m.next) {
			return nil, false
		}
		begun := time.Now()
		m.collect()
		m.next = time.Now().Add(max(time.Second, 10*time.Since(begun)))
		if !m.fits(bytes, share) {
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

// await is Enter for a watch, which waits until there is room. It reserves an eighth of
// the limit at most.
func (m *Memory) await(ctx context.Context, bytes int64) (leave func(), err error) {
	if m != nil {
		bytes = min(bytes, m.limit/8)
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
func (m *Memory) fits(bytes int64, share float64) bool {
	return float64(m.used()+m.reserved+bytes) <= share*float64(m.limit)
}

// reading returns a function to call with every event of a study that is read. Its error
// is a [MemoryError] if there is no room for more.
func (m *Memory) reading() func(study.Event) error {
	const step = 1 << 20 // bytes between two looks
	unseen := step
	return func(e study.Event) error {
		if unseen += approximateSize(e); m == nil || unseen < step {
			return nil
		}
		unseen = 0
		leave, ok := m.Enter(step, shareLoad)
		if !ok {
			return &MemoryError{m.limit}
		}
		leave()
		return nil
	}
}

// Short reports whether watches have to wait.
func (m *Memory) Short() bool {
	if m == nil {
		return false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return !m.fits(watchRoom, ShareWatch)
}

// usedMemory returns the bytes that the process has of the system and that hold
// something, garbage included. Mapped files do not count.
func usedMemory() int64 {
	samples := []metrics.Sample{
		{Name: "/memory/classes/total:bytes"},
		{Name: "/memory/classes/heap/released:bytes"},
		{Name: "/memory/classes/heap/free:bytes"},
	}
	metrics.Read(samples)
	return int64(samples[0].Value.Uint64() - samples[1].Value.Uint64() - samples[2].Value.Uint64())
}

// MemoryError refuses what there is no room for in memory. Nothing happened. Its code is
// [Exhausted].
type MemoryError struct{ Limit int64 }

func (e *MemoryError) Error() string {
	return fmt.Sprintf("the server's memory is short, of which it may use %d bytes (tuner serve --max-memory). Try again later", e.Limit)
}

// RetryAfter is when to try again.
func (e *MemoryError) RetryAfter() time.Duration { return time.Second }
