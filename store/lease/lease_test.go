package lease

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/bkbtuner/bkb/store"
	"github.com/bkbtuner/bkb/store/memory"
	"github.com/bkbtuner/bkb/store/storetest"
	"github.com/bkbtuner/bkb/tuner/study"
)

const ttl = 10 * time.Second

// faulty is a store whose renewals fail while it is away, and which outlives its
// members.
type faulty struct {
	*memory.Store
	mu   sync.Mutex
	away bool
}

var errAway = errors.New("away")

func (f *faulty) set(away bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.away = away
}

func (f *faulty) Renew(ctx context.Context, id store.ServerID, ttl time.Duration) error {
	f.mu.Lock()
	away := f.away
	f.mu.Unlock()
	if away {
		return errAway
	}
	return f.Store.Renew(ctx, id, ttl)
}

func (f *faulty) Close() error { return nil }

// bubble runs a test with the clock of a bubble.
func bubble(t *testing.T, f func(t *testing.T, s *faulty)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { f(t, &faulty{Store: memory.New()}) })
}

func join(t *testing.T, s store.Shared, address string) *Member {
	t.Helper()
	begun := time.Now()
	m, err := Join(t.Context(), s, Options{Address: address, TTL: ttl, Clock: func() time.Duration { return time.Since(begun) }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Close() })
	return m
}

// freeze stops the renewals of a member, as a frozen process does.
func freeze(m *Member) {
	m.cancel()
	<-m.renewed
}

func create(t *testing.T, s store.Store, name string) store.StudyID {
	t.Helper()
	info, err := s.Create(t.Context(), name, storetest.Examples()[:1])
	if err != nil {
		t.Fatal(err)
	}
	return info.ID
}

func paused() []study.Event { return []study.Event{{Time: time.Now(), Body: study.Paused{}}} }

func wantFenced(t *testing.T, err error) {
	t.Helper()
	if !errors.As(err, new(*store.FencedError)) {
		t.Errorf("error is %v, want a FencedError", err)
	}
}

// TestStore runs the suite on a member that acquires a study before each write.
func TestStore(t *testing.T) {
	storetest.Run(t, func(t *testing.T) storetest.Harness {
		m, err := Join(t.Context(), memory.New(), Options{})
		if err != nil {
			t.Fatal(err)
		}
		return storetest.Harness{Store: &acquiring{Member: m}}
	})
}

// acquiring is a member that acquires every study once.
type acquiring struct {
	*Member
	once sync.Mutex
}

func (a *acquiring) Commit(ctx context.Context, id store.StudyID, expected study.Position, events []study.Event, summary []byte) error {
	a.once.Lock()
	_, has := a.claim(id)
	var err error
	if !has {
		err = a.Acquire(ctx, id)
	}
	a.once.Unlock()
	if err != nil {
		return err
	}
	return a.Member.Commit(ctx, id, expected, events, summary)
}

func TestTakeOver(t *testing.T) {
	bubble(t, func(t *testing.T, s *faulty) {
		a, b := join(t, s, "a:1"), join(t, s, "b:1")
		id := create(t, a, "s")
		wantFenced(t, a.Commit(t.Context(), id, 1, paused(), nil)) // not acquired
		if err := a.Acquire(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		time.Sleep(3*ttl + ttl/50) // renewals keep it
		wantFenced(t, b.Acquire(t.Context(), id))
		if err := a.Commit(t.Context(), id, 1, paused(), nil); err != nil {
			t.Fatal(err)
		}
		freeze(a)
		time.Sleep(ttl * 8 / 10)
		if a.Alive() {
			t.Error("a is alive after four fifths of its lease")
		}
		wantFenced(t, b.Acquire(t.Context(), id))
		time.Sleep(ttl)
		if err := b.Acquire(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		wantFenced(t, a.Commit(t.Context(), id, 2, paused(), nil))
		wantFenced(t, a.Delete(t.Context(), id))
		if err := b.Commit(t.Context(), id, 2, paused(), nil); err != nil {
			t.Error(err)
		}
	})
}

// TestBuried lets a server learn that it was buried.
func TestBuried(t *testing.T) {
	bubble(t, func(t *testing.T, s *faulty) {
		a, b := join(t, s, "a:1"), join(t, s, "b:1")
		id := create(t, a, "s")
		if err := a.Acquire(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		if err := s.Unregister(t.Context(), a.ID()); err != nil {
			t.Fatal(err)
		}
		if err := b.Acquire(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		<-a.Buried()
		if a.Alive() || !errors.As(a.Err(), new(*store.BuriedError)) {
			t.Errorf("alive %t, error %v", a.Alive(), a.Err())
		}
	})
}

// TestOutage lets the store be away for longer than a lease. The servers continue
// afterwards and do not bury each other.
func TestOutage(t *testing.T) {
	bubble(t, func(t *testing.T, s *faulty) {
		a := join(t, s, "a:1")
		time.Sleep(3 * ttl)
		b := join(t, s, "b:1")
		id := create(t, a, "s")
		if err := a.Acquire(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		time.Sleep(3 * ttl)
		s.set(true)
		time.Sleep(3 * ttl)
		if a.Alive() || b.Alive() {
			t.Error("servers are alive without renewals")
		}
		wantFenced(t, b.Acquire(t.Context(), id)) // b does not bury while it is not alive
		s.set(false)
		for range 50 {
			wantFenced(t, b.Acquire(t.Context(), id))
			time.Sleep(ttl / 50)
		}
		if !a.Alive() || !b.Alive() {
			t.Error("servers are not alive after the outage")
		}
		if err := a.Commit(t.Context(), id, 1, paused(), nil); err != nil {
			t.Error(err)
		}
	})
}

// TestSuspended stops one server with its machine. Its monotonic clock does not show it.
func TestSuspended(t *testing.T) {
	bubble(t, func(t *testing.T, s *faulty) {
		begun, slept := time.Now(), time.Duration(0)
		o := Options{
			TTL: ttl, Clock: func() time.Duration { return time.Since(begun) },
			Monotonic: func() time.Duration { return time.Since(begun) - slept },
		}
		a, err := Join(t.Context(), s, o)
		if err != nil {
			t.Fatal(err)
		}
		defer a.Close()
		freeze(a)
		time.Sleep(ttl)
		slept = ttl
		if a.Alive() {
			t.Error("a machine that was suspended takes its lease to be in force")
		}
	})
}

func TestYield(t *testing.T) {
	bubble(t, func(t *testing.T, s *faulty) {
		a, b := join(t, s, "a:1"), join(t, s, "b:1")
		id := create(t, a, "s")
		if err := a.Yield(t.Context(), id); err != nil { // not acquired
			t.Error(err)
		}
		if err := a.Acquire(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		if err := a.Yield(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		wantFenced(t, a.Commit(t.Context(), id, 1, paused(), nil))
		if err := b.Acquire(t.Context(), id); err != nil {
			t.Error(err)
		}
		if err := b.Close(); err != nil {
			t.Error(err)
		}
		if err := a.Acquire(t.Context(), id); err != nil { // at once
			t.Error(err)
		}
	})
}

// TestAcquireAgain makes what an earlier claim of the same server left behind void.
func TestAcquireAgain(t *testing.T) {
	bubble(t, func(t *testing.T, s *faulty) {
		a := join(t, s, "a:1")
		id := create(t, a, "s")
		if err := a.Acquire(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		old, _ := a.claim(id)
		if err := a.Acquire(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		wantFenced(t, s.CommitAs(t.Context(), old, 1, paused(), nil))
		if err := a.Commit(t.Context(), id, 1, paused(), nil); err != nil {
			t.Error(err)
		}
		if err := a.Delete(t.Context(), id); err != nil {
			t.Error(err)
		}
	})
}

func TestOptions(t *testing.T) {
	for _, wrong := range []time.Duration{-1, time.Millisecond, time.Hour} {
		if _, err := Join(t.Context(), memory.New(), Options{TTL: wrong}); err == nil {
			t.Errorf("a lease of %v was accepted", wrong)
		}
	}
	if first, second := bootTime(), bootTime(); second < first {
		t.Errorf("the clock goes from %v to %v", first, second)
	}
}
