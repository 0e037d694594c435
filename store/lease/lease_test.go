package lease

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/bkbtuner/bkb/store"
	"github.com/bkbtuner/bkb/store/memory"
	"github.com/bkbtuner/bkb/store/storetest"
	"github.com/bkbtuner/bkb/store/storetest/eventtest"
	"github.com/bkbtuner/bkb/tuner/study"
)

const ttl = 10 * time.Second

// faulty is a store that is away at times, or refuses to write, and which outlives its
// members.
type faulty struct {
	*memory.Store
	mu             sync.Mutex
	away, readOnly bool
}

var errAway = errors.New("away")

func (f *faulty) set(away, readOnly bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.away, f.readOnly = away, readOnly
}

func (f *faulty) fault(writes bool) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.away || writes && f.readOnly {
		return errAway
	}
	return nil
}

func (f *faulty) Servers(ctx context.Context) ([]store.Server, error) {
	if err := f.fault(false); err != nil {
		return nil, err
	}
	return f.Store.Servers(ctx)
}

func (f *faulty) Renew(ctx context.Context, id store.ServerID, beat uint64) error {
	if err := f.fault(true); err != nil {
		return err
	}
	return f.Store.Renew(ctx, id, beat)
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
	info, err := s.Create(t.Context(), name, eventtest.Examples()[:1])
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

// TestClocks lets one server take over from another that stops at a random time, with
// clocks that differ by up to a tenth. The one that stopped knows before that its lease is
// over, and the other one takes over soon.
func TestClocks(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	random := rand.New(rand.NewPCG(seed, 1))
	for range 50 {
		bubble(t, func(t *testing.T, s *faulty) {
			var members [2]*Member
			for i := range members {
				begun, rate := time.Now(), .9+.2*random.Float64()
				m, err := Join(t.Context(), s, Options{Address: "a:1", TTL: ttl, Clock: func() time.Duration {
					return time.Duration(rate * float64(time.Since(begun)))
				}})
				if err != nil {
					t.Fatal(err)
				}
				defer m.Close()
				members[i] = m
			}
			a, b := members[0], members[1]
			id := create(t, a, "s")
			if err := a.Acquire(t.Context(), id); err != nil {
				t.Fatal(err)
			}
			time.Sleep(ttl + time.Duration(random.Int64N(int64(ttl))))
			stopped := time.Now()
			freeze(a)
			for b.Acquire(t.Context(), id) != nil {
				time.Sleep(ttl / 100)
				if time.Since(stopped) > 5*ttl/4 {
					t.Fatalf("seed %d: the study is not free %v after its server stopped", seed, time.Since(stopped))
				}
			}
			if a.Alive() {
				t.Errorf("seed %d: a takes its lease to be in force %v after it stopped, and b has the study", seed, time.Since(stopped))
			}
		})
	}
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

// TestOutage lets the store be away, or read only, for longer than a lease. The servers
// continue afterwards and do not bury each other.
func TestOutage(t *testing.T) {
	for phase := range 10 { // of its end, as seen by the one server and the other
		t.Run("away", func(t *testing.T) { testOutage(t, true, false, time.Duration(phase)*ttl/50) })
		t.Run("read only", func(t *testing.T) { testOutage(t, false, true, time.Duration(phase)*ttl/50) })
	}
}

func testOutage(t *testing.T, away, readOnly bool, phase time.Duration) {
	bubble(t, func(t *testing.T, s *faulty) {
		a := join(t, s, "a:1")
		time.Sleep(3*ttl + ttl/10)
		b := join(t, s, "b:1")
		id := create(t, a, "s")
		if err := a.Acquire(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		time.Sleep(3 * ttl)
		s.set(away, readOnly)
		for range 30 {
			wantFenced(t, b.Acquire(t.Context(), id)) // b does not bury while it is not alive
			time.Sleep(ttl / 10)
		}
		time.Sleep(phase)
		if a.Alive() || b.Alive() {
			t.Error("servers are alive without renewals")
		}
		s.set(false, false)
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

// TestSuspended stops one server with its machine.
func TestSuspended(t *testing.T) {
	bubble(t, func(t *testing.T, s *faulty) {
		begun := time.Now()
		o := Options{TTL: ttl, Clock: func() time.Duration { return time.Since(begun) }}
		a, err := Join(t.Context(), s, o)
		if err != nil {
			t.Fatal(err)
		}
		defer a.Close()
		freeze(a)
		time.Sleep(ttl)
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
