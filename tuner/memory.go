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

// Memory limits the memory of a process. Work that needs much memory asks for room
// before it begins, and is refused if there is none. A nil Memory has no limit.
type Memory struct {
	limit   int64
	used    func() int64
	collect func()

	mu       sync.Mutex
	reserved int64
	next     time.Time // when garbage may be collected again
}

// The shares of the limit that each kind of work may fill. Watches get the least,
// because they can wait. Admins can act when workers cannot. Reading a study stops when
// it does not fit.
const (
	ShareWatch  = 0.6
	ShareWorker = 0.75
	ShareAdmin  = 0.85
	shareLoad   = 0.9
)

// NewMemory returns the memory of the process with a limit in bytes. It returns nil,
// which means no limit, unless the limit is positive.
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
// false if more than a share of the limit would be in use. Garbage counts as used.
// Enter therefore collects garbage before it refuses, for at most a tenth of the time.
func (m *Memory) Enter(bytes int64, share float64) (leave func(), ok bool) {
	if m == nil || planted.Is(planted.MemoryUnchecked) {
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
func (m *Memory) tidy() bool {
	if time.Now().Before(m.next) {
		return false
	}
	begun := time.Now()
	m.collect()
	m.next = time.Now().Add(max(time.Second, 10*time.Since(begun)))
	return true
}

// settle waits until garbage has been collected after work that was refused. It is for
// the next work of the same call.
func (m *Memory) settle(ctx context.Context) error {
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

// await is Enter for a watch, and waits until there is room. It reserves at most an
// eighth of the limit.
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

// reading returns a function to call with every event of a study being read. It returns
// a [MemoryError] if there is no room for more. Of a study that is not kept, the first
// bytes are always read.
func (m *Memory) reading(kept bool) func(study.Event) error {
	const step = 1 << 20 // bytes between two checks
	unseen := 0
	if kept {
		unseen = step
	}
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

// usedMemory returns the bytes that the process has from the system and uses, including
// garbage. Mapped files do not count.
func usedMemory() int64 {
	samples := []metrics.Sample{
		{Name: "/memory/classes/total:bytes"},
		{Name: "/memory/classes/heap/released:bytes"},
		{Name: "/memory/classes/heap/free:bytes"},
	}
	metrics.Read(samples)
	return int64(samples[0].Value.Uint64() - samples[1].Value.Uint64() - samples[2].Value.Uint64())
}

// MemoryError refuses work for which there is no room in memory. The call had no
// effect. Its code is [Exhausted].
type MemoryError struct{ Limit int64 }

func (e *MemoryError) Error() string {
	return fmt.Sprintf("memory is short, and the server may use %d bytes (tuner serve --max-memory). Retry later", e.Limit)
}

// RetryAfter returns how long to wait before a retry.
func (e *MemoryError) RetryAfter() time.Duration { return time.Second }
