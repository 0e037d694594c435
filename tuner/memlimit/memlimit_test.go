package memlimit

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"testing"
	"testing/synctest"
	"time"
)

// pretend is a Limit of 1,000 bytes whose use and garbage a test sets.
func pretend(used, garbage *int64, collected *int) *Limit {
	return Of(1000, func() int64 { return *used + *garbage }, func() {
		*garbage = 0
		*collected++
	})
}

// TestLimit checks that work gets room up to its share of the limit. Garbage is
// collected before work is refused, but not every time.
func TestLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		used, garbage, collected := int64(300), int64(0), 0
		m := pretend(&used, &garbage, &collected)
		enter := func(bytes int64, share float64, want bool) (leave func()) {
			t.Helper()
			leave, ok := m.Enter(bytes, share)
			if ok != want {
				t.Errorf("%d bytes beside %d: %t", bytes, used, ok)
			}
			return leave
		}
		leave := enter(200, 0.5, true)
		enter(1, 0.5, false)
		enter(1, 0.6, true)()
		leave()
		leave() // a second call has no effect
		enter(200, 0.5, true)()
		if collected != 1 {
			t.Errorf("collected %d times", collected)
		}
		garbage = 500
		enter(0, 0.5, false) // garbage was collected just before
		time.Sleep(2 * time.Second)
		enter(0, 0.5, true)()
		if collected != 2 {
			t.Errorf("collected %d times", collected)
		}
		used = 601
		if !m.Short() {
			t.Error("601 of 1,000 bytes are not short")
		}
	})
	var none *Limit
	if leave, ok := none.Enter(1<<60, 0); !ok || none.Short() {
		t.Error("no limit refuses")
	} else {
		leave()
	}
	if New(0) != nil || New(-1) != nil {
		t.Error("no limit is one")
	}
	m := New(1 << 50)
	if used := m.used(); used < 1<<20 || used > 1<<40 {
		t.Errorf("the process uses %d bytes", used)
	}
}

// TestPaceCollector checks that a small heap gathers 16 MiB of garbage before a collection, or an
// eighth of the limit, and a large one 40 %.
func TestPaceCollector(t *testing.T) {
	t.Setenv("GOGC", "")
	defer debug.SetGCPercent(debug.SetGCPercent(100))
	percent := func() int {
		runtime.GC()
		time.Sleep(100 * time.Millisecond) // the cleanup runs after the collection
		s := []metrics.Sample{{Name: "/gc/gogc:percent"}}
		metrics.Read(s)
		return int(s[0].Value.Uint64())
	}
	PaceCollector()
	if p := percent(); p < 200 || p > 400 {
		t.Errorf("a small heap may grow by %d %%", p)
	}
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(64 << 20))
	if p := percent(); p < 100 || p > 200 {
		t.Errorf("a small heap below a small limit may grow by %d %%", p)
	}
	held := make([]byte, 80<<20)
	if p := percent(); p != garbagePercent {
		t.Errorf("a heap of 80 MiB may grow by %d %%", p)
	}
	runtime.KeepAlive(held)
}
