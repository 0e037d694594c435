package storetest

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/bkbtuner/bkb/store"
	"github.com/bkbtuner/bkb/tuner/study"
)

// RunShared runs the suite of a [store.Shared] store, besides [Run]. Each test gets its
// own empty store from open and closes it.
func RunShared(t *testing.T, open func(t *testing.T) store.Shared) {
	for _, test := range []struct {
		name string
		run  func(*testing.T, *sharedFixture)
	}{
		{"ServersComeAndGo", testServers},
		{"BuryOnlyTheSilent", testBury},
		{"RenewalOrBurial", testRenewalRace},
		{"OneOwner", testOneOwner},
		{"ClaimRace", testClaimRace},
		{"NewClaimVoidsOlder", testEpochs},
		{"VoidClaimWritesNothing", testFenced},
		{"Release", testRelease},
		{"WithoutClaim", testUnclaimed},
		{"BatchMixesOwners", testMixed},
		{"OwnersAndDeletion", testOwnedDelete},
		{"SharedClosed", testSharedClosed},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := open(t)
			test.run(t, &sharedFixture{newFixture(t, Harness{Store: s}), s})
		})
	}
}

type sharedFixture struct {
	*fixture
	shared store.Shared
}

const lease = time.Minute

func (f *sharedFixture) register(t *testing.T, address string) store.ServerID {
	t.Helper()
	id, err := f.shared.Register(t.Context(), address, lease)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func (f *sharedFixture) claim(t *testing.T, id store.StudyID, by store.ServerID) store.Claim {
	t.Helper()
	c, err := f.shared.Claim(t.Context(), id, by)
	if err != nil {
		t.Fatalf("Claim(%d, %d): %v", id, by, err)
	}
	return c
}

// bury removes a server that renews nothing meanwhile.
func (f *sharedFixture) bury(t *testing.T, v store.Server) {
	t.Helper()
	if gone, err := f.shared.Bury(t.Context(), v); !gone || err != nil {
		t.Fatalf("Bury(%+v): %t, %v", v, gone, err)
	}
}

func testServers(t *testing.T, f *sharedFixture) {
	a := f.register(t, "a:1")
	b := f.register(t, "")
	if a == 0 || b <= a {
		t.Errorf("ids %d and %d, want them to grow from 1", a, b)
	}
	want := fmt.Sprint([]store.Server{{ID: a, Address: "a:1", TTL: lease}, {ID: b, TTL: lease}})
	if all, err := f.shared.Servers(t.Context()); err != nil || fmt.Sprint(all) != want {
		t.Errorf("servers %v, %v, want %s", all, err, want)
	}
	for range 2 { // the second has no effect
		if err := f.shared.Unregister(t.Context(), a); err != nil {
			t.Error(err)
		}
	}
	buried := wantError[*store.BuriedError](t, "Renew of a removed server", f.shared.Renew(t.Context(), a, 1))
	if buried != nil && buried.Server != a {
		t.Errorf("server %d was buried, want %d", buried.Server, a)
	}
	if c := f.register(t, "c:1"); c <= b {
		t.Errorf("id %d after %d", c, b)
	}
}

func testBury(t *testing.T, f *sharedFixture) {
	dying, living := f.register(t, "dying:1"), f.register(t, "living:1")
	seen := store.Server{ID: living, Address: "living:1", TTL: lease}
	for _, beat := range []uint64{1, 7, 1<<63 - 1, 2} { // a late renewal may bring an earlier beat
		if err := f.shared.Renew(t.Context(), living, beat); err != nil {
			t.Fatal(err)
		}
		if gone, err := f.shared.Bury(t.Context(), seen); gone || err != nil {
			t.Errorf("burying a server that renewed its lease: %t, %v", gone, err)
		}
		seen.Beat = beat
	}
	dead := store.Server{ID: dying, Address: "dying:1", TTL: lease}
	f.bury(t, dead)
	f.bury(t, dead) // it is gone already
	if all, err := f.shared.Servers(t.Context()); err != nil || len(all) != 1 || all[0] != seen {
		t.Errorf("servers %v, %v, want %+v", all, err, seen)
	}
	wantError[*store.BuriedError](t, "Renew", f.shared.Renew(t.Context(), dying, 1))
}

// testRenewalRace lets a server renew its lease while another one buries it.
func testRenewalRace(t *testing.T, f *sharedFixture) {
	ended := [2]int{}
	for i := range 20 {
		id := f.register(t, "a:1")
		var gone bool
		var renewal, burial error
		var both sync.WaitGroup
		both.Go(func() { renewal = f.shared.Renew(context.Background(), id, 1) })
		both.Go(func() {
			time.Sleep(time.Duration(i%5) * 100 * time.Microsecond)
			gone, burial = f.shared.Bury(context.Background(), store.Server{ID: id, Address: "a:1", TTL: lease})
		})
		both.Wait()
		if burial != nil {
			t.Fatal(burial)
		}
		if gone {
			ended[0]++
			wantError[*store.BuriedError](t, "Renew of a buried server", renewal)
		} else {
			ended[1]++
			if renewal != nil {
				t.Errorf("neither renewed nor buried: %v", renewal)
			}
		}
	}
	t.Logf("%d buried, %d renewed", ended[0], ended[1])
}

func testOneOwner(t *testing.T, f *sharedFixture) {
	info := f.create(t, "s", 0)
	a, b := f.register(t, "a:1"), f.register(t, "b:1")
	wantServer := func(want store.Server) {
		t.Helper()
		if v, err := f.shared.Owner(t.Context(), info.ID); err != nil || v != want {
			t.Errorf("the owner is %+v, %v, want %+v", v, err, want)
		}
	}
	serverA := store.Server{ID: a, Address: "a:1", TTL: lease}
	wantServer(store.Server{})
	first := f.claim(t, info.ID, a)
	if first.Study != info.ID || first.Server != a || first.Epoch == 0 {
		t.Errorf("claim %+v", first)
	}
	_, err := f.shared.Claim(t.Context(), info.ID, b)
	if other := wantError[*store.FencedError](t, "Claim of another's study", err); other != nil && (other.Study != info.ID || other.Server != serverA) {
		t.Errorf("owner %+v, want a:1", other)
	}
	if err := f.shared.CommitAs(t.Context(), first, 1, []study.Event{marked("2")}, nil); err != nil {
		t.Errorf("commit by an owner that was not buried: %v", err)
	}
	wantServer(serverA)
	f.bury(t, serverA)
	wantServer(store.Server{})
	second := f.claim(t, info.ID, b)
	wantServer(store.Server{ID: b, Address: "b:1", TTL: lease})
	if second.Epoch <= first.Epoch {
		t.Errorf("epoch %d after %d", second.Epoch, first.Epoch)
	}
	_, err = f.shared.Claim(t.Context(), info.ID+100, b)
	wantError[*store.NotFoundError](t, "Claim of no study", err)
	_, err = f.shared.Claim(t.Context(), 1<<63, b)
	wantError[*store.NotFoundError](t, "Claim of an impossible study", err)
	for _, id := range []store.StudyID{info.ID + 100, 1 << 63} {
		_, err = f.shared.Owner(t.Context(), id)
		wantError[*store.NotFoundError](t, "Owner of no study", err)
	}
}

// testClaimRace lets servers claim a free study at once, some of which join at the same
// time.
func testClaimRace(t *testing.T, f *sharedFixture) {
	for round := range 10 {
		info := f.create(t, fmt.Sprint("s", round), 0)
		var mu sync.Mutex
		var winners []store.Claim
		var all sync.WaitGroup
		for i := range 8 {
			all.Go(func() {
				by, err := f.shared.Register(context.Background(), fmt.Sprint(i), lease)
				if err != nil {
					t.Error(err)
					return
				}
				c, err := f.shared.Claim(context.Background(), info.ID, by)
				if err != nil {
					wantError[*store.FencedError](t, "Claim", err)
					return
				}
				mu.Lock()
				winners = append(winners, c)
				mu.Unlock()
			})
		}
		all.Wait()
		if len(winners) != 1 {
			t.Fatalf("%d servers own the study: %v", len(winners), winners)
		}
		if err := f.shared.CommitAs(t.Context(), winners[0], 1, []study.Event{marked("2")}, nil); err != nil {
			t.Error(err)
		}
	}
}

func testEpochs(t *testing.T, f *sharedFixture) {
	info := f.create(t, "s", 0)
	a := f.register(t, "a:1")
	old := f.claim(t, info.ID, a)
	c := f.claim(t, info.ID, a)
	if c.Epoch <= old.Epoch {
		t.Errorf("epoch %d after %d", c.Epoch, old.Epoch)
	}
	f.wantFenced(t, old, 1)
	if err := f.shared.CommitAs(t.Context(), c, 1, []study.Event{marked("2")}, nil); err != nil {
		t.Error(err)
	}
	// A claim in force still meets conflicts.
	err := f.shared.CommitAs(t.Context(), c, 1, []study.Event{marked("3")}, nil)
	wantError[*store.ConflictError](t, "CommitAs", err)
	wantIs(t, "CommitAs", f.shared.CommitAs(t.Context(), c, 2, nil, nil), store.ErrInvalid)
}

// wantFenced checks that a claim writes nothing.
func (f *sharedFixture) wantFenced(t *testing.T, c store.Claim, head study.Position) {
	t.Helper()
	err := f.shared.CommitAs(t.Context(), c, head, []study.Event{marked("void")}, nil)
	if e := wantError[*store.FencedError](t, "CommitAs", err); e != nil && e.Study != c.Study {
		t.Errorf("fenced from study %d, want %d", e.Study, c.Study)
	}
	wantError[*store.FencedError](t, "DeleteAs", f.shared.DeleteAs(t.Context(), c))
	if now := f.head(t, c.Study); now != head {
		t.Errorf("the head is %d, want %d", now, head)
	}
}

func testFenced(t *testing.T, f *sharedFixture) {
	info := f.create(t, "s", 0)
	a, b := f.register(t, "a:1"), f.register(t, "b:1")
	old := f.claim(t, info.ID, a)
	if err := f.shared.Unregister(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	// A server that was removed keeps what no other one claims.
	if err := f.shared.CommitAs(t.Context(), old, 1, []study.Event{marked("2")}, nil); err != nil {
		t.Error(err)
	}
	c := f.claim(t, info.ID, b)
	f.wantFenced(t, old, 2)
	f.wantFenced(t, store.Claim{Study: info.ID, Server: b, Epoch: old.Epoch}, 2)
	f.wantFenced(t, store.Claim{Study: info.ID, Server: a, Epoch: c.Epoch}, 2)
	if err := f.shared.CommitAs(t.Context(), c, 2, []study.Event{marked("3")}, nil); err != nil {
		t.Error(err)
	}
}

func testRelease(t *testing.T, f *sharedFixture) {
	info := f.create(t, "s", 0)
	a, b := f.register(t, "a:1"), f.register(t, "b:1")
	old := f.claim(t, info.ID, a)
	now := f.claim(t, info.ID, a)
	release := func(c store.Claim) {
		t.Helper()
		if err := f.shared.Release(t.Context(), c); err != nil {
			t.Error(err)
		}
	}
	release(old) // is void
	_, err := f.shared.Claim(t.Context(), info.ID, b)
	wantError[*store.FencedError](t, "Claim after the release of a void claim", err)
	release(now)
	f.wantFenced(t, now, 1)
	c := f.claim(t, info.ID, b)
	release(now)
	if err := f.shared.CommitAs(t.Context(), c, 1, []study.Event{marked("2")}, nil); err != nil {
		t.Error(err)
	}
	release(store.Claim{Study: info.ID + 100, Server: a, Epoch: 1})
}

// testUnclaimed checks the writes of processes that are not servers.
func testUnclaimed(t *testing.T, f *sharedFixture) {
	info := f.create(t, "s", 0)
	f.commit(t, info.ID, 1, marked("2"))
	a := f.register(t, "a:1")
	c := f.claim(t, info.ID, a)
	beating, stop := context.WithCancel(t.Context())
	defer stop()
	var beats sync.WaitGroup
	beats.Go(func() {
		for beat := uint64(1); beating.Err() == nil; beat++ {
			if err := f.shared.Renew(context.Background(), a, beat); err != nil {
				t.Error(err)
			}
			time.Sleep(10 * time.Millisecond)
		}
	})
	err := f.Commit(t.Context(), info.ID, 2, []study.Event{marked("3")}, nil)
	if e := wantError[*store.FencedError](t, "Commit", err); e != nil && e.Server.ID != a {
		t.Errorf("owner %+v, want a:1", e.Server)
	}
	wantError[*store.FencedError](t, "Delete", f.Delete(t.Context(), info.ID))
	stop()
	beats.Wait()
	if err := f.shared.Unregister(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	f.commit(t, info.ID, 2, marked("3"))
	f.wantFenced(t, c, 3) // the study was freed
}

// testMixed writes to studies of several owners at once, some under void claims.
func testMixed(t *testing.T, f *sharedFixture) {
	a := f.register(t, "a:1")
	const studies, commits = 12, 10
	var all sync.WaitGroup
	for i := range studies {
		info := f.create(t, fmt.Sprint("s", i), 0)
		c := store.Claim{Study: info.ID}
		if i%3 > 0 {
			c = f.claim(t, info.ID, a)
		}
		void := i%3 == 2
		if void {
			f.claim(t, info.ID, a)
		}
		all.Go(func() {
			for n := range commits {
				err := f.shared.CommitAs(context.Background(), c, study.Position(n+1), []study.Event{marked("%d", n)}, nil)
				if void {
					wantError[*store.FencedError](t, "CommitAs", err)
				} else if err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	for i, info := range f.list(t, "") {
		var n int
		if _, err := fmt.Sscanf(info.Name, "s%d", &n); err != nil {
			t.Fatal(err)
		}
		want := study.Position(commits + 1)
		if n%3 == 2 {
			want = 1
		}
		if info.Head != want {
			t.Errorf("study %d (%s) ends at %d, want %d", i, info.Name, info.Head, want)
		}
	}
}

func testOwnedDelete(t *testing.T, f *sharedFixture) {
	info := f.create(t, "s", 0)
	a := f.register(t, "a:1")
	c := f.claim(t, info.ID, a)
	if err := f.shared.DeleteAs(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	wantError[*store.NotFoundError](t, "DeleteAs", f.shared.DeleteAs(t.Context(), c))
	wantError[*store.NotFoundError](t, "CommitAs", f.shared.CommitAs(t.Context(), c, 1, []study.Event{marked("2")}, nil))
	_, err := f.shared.Claim(t.Context(), info.ID, a)
	wantError[*store.NotFoundError](t, "Claim", err)
	again := f.create(t, "s", 0)
	f.commit(t, again.ID, 1, marked("2")) // the new study has no owner
}

func testSharedClosed(t *testing.T, f *sharedFixture) {
	info := f.create(t, "s", 0)
	a := f.register(t, "a:1")
	c := f.claim(t, info.ID, a)
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	for name, call := range map[string]func() error{
		"Register":   func() error { _, err := f.shared.Register(ctx, "", lease); return err },
		"Renew":      func() error { return f.shared.Renew(ctx, a, 1) },
		"Unregister": func() error { return f.shared.Unregister(ctx, a) },
		"Servers":    func() error { _, err := f.shared.Servers(ctx); return err },
		"Bury":       func() error { _, err := f.shared.Bury(ctx, store.Server{ID: a}); return err },
		"Owner":      func() error { _, err := f.shared.Owner(ctx, info.ID); return err },
		"Claim":      func() error { _, err := f.shared.Claim(ctx, info.ID, a); return err },
		"Release":    func() error { return f.shared.Release(ctx, c) },
		"CommitAs":   func() error { return f.shared.CommitAs(ctx, c, 1, []study.Event{marked("2")}, nil) },
		"DeleteAs":   func() error { return f.shared.DeleteAs(ctx, c) },
	} {
		wantIs(t, name, call(), store.ErrClosed)
	}
}
