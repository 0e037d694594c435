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

// register adds a server with an address.
func (f *sharedFixture) register(t *testing.T, address string) store.Server {
	t.Helper()
	id, err := f.shared.Register(t.Context(), address, lease)
	ok(t, "Register", err)
	return store.Server{ID: id, Address: address, TTL: lease}
}

// owned creates a study that a new server at a:1 claims.
func (f *sharedFixture) owned(t *testing.T) (store.Claim, store.Server) {
	t.Helper()
	info, a := f.create(t, "s", 0), f.register(t, "a:1")
	return f.claim(t, info.ID, a), a
}

func (f *sharedFixture) claim(t *testing.T, id store.StudyID, by store.Server) store.Claim {
	t.Helper()
	c, err := f.shared.Claim(t.Context(), id, by.ID)
	ok(t, "Claim", err)
	return c
}

// add commits one event under a claim.
func (f *sharedFixture) add(c store.Claim, head study.Position) error {
	return f.shared.CommitAs(context.Background(), c, head, []study.Event{marked("%d", head+1)}, nil)
}

// bury removes a server that renews nothing meanwhile.
func (f *sharedFixture) bury(t *testing.T, v store.Server) {
	t.Helper()
	if gone, err := f.shared.Bury(t.Context(), v); !gone || err != nil {
		t.Fatalf("Bury(%+v): %t, %v", v, gone, err)
	}
}

// wantServers compares the servers that there are.
func (f *sharedFixture) wantServers(t *testing.T, want ...store.Server) {
	t.Helper()
	if all, err := f.shared.Servers(t.Context()); err != nil || fmt.Sprint(all) != fmt.Sprint(want) {
		t.Errorf("servers %v, %v, want %v", all, err, want)
	}
}

// wantOwner compares the owner of a study.
func (f *sharedFixture) wantOwner(t *testing.T, id store.StudyID, want store.Server) {
	t.Helper()
	if v, err := f.shared.Owner(t.Context(), id); err != nil || v != want {
		t.Errorf("the owner is %+v, %v, want %+v", v, err, want)
	}
}

// wantFenced checks that a claim writes nothing.
func (f *sharedFixture) wantFenced(t *testing.T, c store.Claim, head study.Position) {
	t.Helper()
	if e := wantError[*store.FencedError](t, "CommitAs", f.add(c, head)); e != nil && e.Study != c.Study {
		t.Errorf("fenced from study %d, want %d", e.Study, c.Study)
	}
	wantError[*store.FencedError](t, "DeleteAs", f.shared.DeleteAs(t.Context(), c))
	if now := f.head(t, c.Study); now != head {
		t.Errorf("the head is %d, want %d", now, head)
	}
}

func testServers(t *testing.T, f *sharedFixture) {
	a, b := f.register(t, "a:1"), f.register(t, "")
	if a.ID == 0 || b.ID <= a.ID {
		t.Errorf("ids %d and %d, want them to grow from 1", a.ID, b.ID)
	}
	f.wantServers(t, a, b)
	for range 2 { // the second has no effect
		ok(t, "Unregister", f.shared.Unregister(t.Context(), a.ID))
	}
	buried := wantError[*store.BuriedError](t, "Renew of a removed server", f.shared.Renew(t.Context(), a.ID, 1))
	if buried != nil && buried.Server != a.ID {
		t.Errorf("server %d was buried, want %d", buried.Server, a.ID)
	}
	if c := f.register(t, "c:1"); c.ID <= b.ID {
		t.Errorf("id %d after %d", c.ID, b.ID)
	}
}

func testBury(t *testing.T, f *sharedFixture) {
	dead, seen := f.register(t, "dying:1"), f.register(t, "living:1")
	for _, beat := range []uint64{1, 7, 1<<63 - 1, 2} { // a late renewal may bring an earlier beat
		ok(t, "Renew", f.shared.Renew(t.Context(), seen.ID, beat))
		if gone, err := f.shared.Bury(t.Context(), seen); gone || err != nil {
			t.Errorf("burying a server that renewed its lease: %t, %v", gone, err)
		}
		seen.Beat = beat
	}
	f.bury(t, dead)
	f.bury(t, dead) // it is gone already
	f.wantServers(t, seen)
	wantError[*store.BuriedError](t, "Renew", f.shared.Renew(t.Context(), dead.ID, 1))
}

// testRenewalRace lets a server renew its lease while another one buries it.
func testRenewalRace(t *testing.T, f *sharedFixture) {
	buried := 0
	for i := range 20 {
		v := f.register(t, "a:1")
		var gone bool
		var renewal, burial error
		var both sync.WaitGroup
		both.Go(func() { renewal = f.shared.Renew(context.Background(), v.ID, 1) })
		both.Go(func() {
			time.Sleep(time.Duration(i%5) * 100 * time.Microsecond)
			gone, burial = f.shared.Bury(context.Background(), v)
		})
		both.Wait()
		ok(t, "Bury", burial)
		if gone {
			buried++
			wantError[*store.BuriedError](t, "Renew of a buried server", renewal)
		} else if renewal != nil {
			t.Errorf("neither renewed nor buried: %v", renewal)
		}
	}
	t.Logf("%d of 20 were buried", buried)
}

func testOneOwner(t *testing.T, f *sharedFixture) {
	info := f.create(t, "s", 0)
	a, b := f.register(t, "a:1"), f.register(t, "b:1")
	f.wantOwner(t, info.ID, store.Server{})
	first := f.claim(t, info.ID, a)
	if first.Study != info.ID || first.Server != a.ID || first.Epoch == 0 {
		t.Errorf("claim %+v", first)
	}
	_, err := f.shared.Claim(t.Context(), info.ID, b.ID)
	if other := wantError[*store.FencedError](t, "Claim of another's study", err); other != nil && (other.Study != info.ID || other.Server != a) {
		t.Errorf("owner %+v, want a:1", other)
	}
	ok(t, "a commit by an owner that was not buried", f.add(first, 1))
	f.wantOwner(t, info.ID, a)
	f.bury(t, a)
	f.wantOwner(t, info.ID, store.Server{})
	second := f.claim(t, info.ID, b)
	f.wantOwner(t, info.ID, b)
	if second.Epoch <= first.Epoch {
		t.Errorf("epoch %d after %d", second.Epoch, first.Epoch)
	}
	for _, id := range []store.StudyID{info.ID + 100, 1 << 63} {
		_, err = f.shared.Claim(t.Context(), id, b.ID)
		wantError[*store.NotFoundError](t, "Claim of no study", err)
		_, err = f.shared.Owner(t.Context(), id)
		wantError[*store.NotFoundError](t, "Owner of no study", err)
	}
}

// testClaimRace lets servers claim a free study at once, which join at the same time.
func testClaimRace(t *testing.T, f *sharedFixture) {
	for round := range 10 {
		info := f.create(t, fmt.Sprint("s", round), 0)
		won := make(chan store.Claim, 8)
		var all sync.WaitGroup
		for i := range cap(won) {
			all.Go(func() {
				by, err := f.shared.Register(context.Background(), fmt.Sprint(i), lease)
				if err != nil {
					t.Error(err)
					return
				}
				if c, err := f.shared.Claim(context.Background(), info.ID, by); err == nil {
					won <- c
				} else {
					wantError[*store.FencedError](t, "Claim", err)
				}
			})
		}
		all.Wait()
		if len(won) != 1 {
			t.Fatalf("%d servers own the study", len(won))
		}
		ok(t, "CommitAs", f.add(<-won, 1))
	}
}

func testEpochs(t *testing.T, f *sharedFixture) {
	old, a := f.owned(t)
	c := f.claim(t, old.Study, a)
	if c.Epoch <= old.Epoch {
		t.Errorf("epoch %d after %d", c.Epoch, old.Epoch)
	}
	f.wantFenced(t, old, 1)
	ok(t, "CommitAs", f.add(c, 1))
	// A claim in force still meets conflicts.
	wantError[*store.ConflictError](t, "CommitAs", f.add(c, 1))
	wantIs(t, "CommitAs", f.shared.CommitAs(t.Context(), c, 2, nil, nil), store.ErrInvalid)
}

func testFenced(t *testing.T, f *sharedFixture) {
	old, a := f.owned(t)
	b := f.register(t, "b:1")
	ok(t, "Unregister", f.shared.Unregister(t.Context(), a.ID))
	ok(t, "a commit by a removed server to a study that no other one claimed", f.add(old, 1))
	c := f.claim(t, old.Study, b)
	f.wantFenced(t, old, 2)
	f.wantFenced(t, store.Claim{Study: c.Study, Server: b.ID, Epoch: old.Epoch}, 2)
	f.wantFenced(t, store.Claim{Study: c.Study, Server: a.ID, Epoch: c.Epoch}, 2)
	ok(t, "CommitAs", f.add(c, 2))
}

func testRelease(t *testing.T, f *sharedFixture) {
	old, a := f.owned(t)
	b, now := f.register(t, "b:1"), f.claim(t, old.Study, a)
	release := func(c store.Claim) { ok(t, "Release", f.shared.Release(t.Context(), c)) }
	release(old) // is void
	_, err := f.shared.Claim(t.Context(), old.Study, b.ID)
	wantError[*store.FencedError](t, "Claim after the release of a void claim", err)
	release(now)
	f.wantFenced(t, now, 1)
	c := f.claim(t, old.Study, b)
	release(now)
	ok(t, "CommitAs", f.add(c, 1))
	release(store.Claim{Study: old.Study + 100, Server: a.ID, Epoch: 1})
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
			if err := f.shared.Renew(context.Background(), a.ID, beat); err != nil {
				t.Error(err)
			}
			time.Sleep(10 * time.Millisecond)
		}
	})
	if e := wantError[*store.FencedError](t, "Commit", f.add(store.Claim{Study: info.ID}, 2)); e != nil && e.Server.ID != a.ID {
		t.Errorf("owner %+v, want a:1", e.Server)
	}
	wantError[*store.FencedError](t, "Delete", f.Delete(t.Context(), info.ID))
	stop()
	beats.Wait()
	ok(t, "Unregister", f.shared.Unregister(t.Context(), a.ID))
	f.commit(t, info.ID, 2, marked("3"))
	f.wantFenced(t, c, 3) // the study was freed
}

// testMixed writes to studies of several owners at once, some under void claims.
func testMixed(t *testing.T, f *sharedFixture) {
	a := f.register(t, "a:1")
	const studies, commits = 12, 10
	want := make(map[store.StudyID]study.Position)
	var all sync.WaitGroup
	for i := range studies {
		info := f.create(t, fmt.Sprint("s", i), 0)
		c, void := store.Claim{Study: info.ID}, i%3 == 2
		if i%3 > 0 {
			c = f.claim(t, info.ID, a)
		}
		want[info.ID] = commits + 1
		if void {
			f.claim(t, info.ID, a)
			want[info.ID] = 1
		}
		all.Go(func() {
			for n := range commits {
				if err := f.add(c, study.Position(n+1)); void {
					wantError[*store.FencedError](t, "CommitAs", err)
				} else if err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	for _, info := range f.list(t, "") {
		if info.Head != want[info.ID] {
			t.Errorf("study %s ends at %d, want %d", info.Name, info.Head, want[info.ID])
		}
	}
}

func testOwnedDelete(t *testing.T, f *sharedFixture) {
	c, a := f.owned(t)
	ok(t, "DeleteAs", f.shared.DeleteAs(t.Context(), c))
	wantError[*store.NotFoundError](t, "DeleteAs", f.shared.DeleteAs(t.Context(), c))
	wantError[*store.NotFoundError](t, "CommitAs", f.add(c, 1))
	_, err := f.shared.Claim(t.Context(), c.Study, a.ID)
	wantError[*store.NotFoundError](t, "Claim", err)
	again := f.create(t, "s", 0)
	f.commit(t, again.ID, 1, marked("2")) // the new study has no owner
}

func testSharedClosed(t *testing.T, f *sharedFixture) {
	c, a := f.owned(t)
	ok(t, "Close", f.Close())
	ctx := t.Context()
	for name, call := range map[string]func() error{
		"Register":   func() error { _, err := f.shared.Register(ctx, "", lease); return err },
		"Renew":      func() error { return f.shared.Renew(ctx, a.ID, 1) },
		"Unregister": func() error { return f.shared.Unregister(ctx, a.ID) },
		"Servers":    func() error { _, err := f.shared.Servers(ctx); return err },
		"Bury":       func() error { _, err := f.shared.Bury(ctx, a); return err },
		"Owner":      func() error { _, err := f.shared.Owner(ctx, c.Study); return err },
		"Claim":      func() error { _, err := f.shared.Claim(ctx, c.Study, a.ID); return err },
		"Release":    func() error { return f.shared.Release(ctx, c) },
		"CommitAs":   func() error { return f.add(c, 1) },
		"DeleteAs":   func() error { return f.shared.DeleteAs(ctx, c) },
	} {
		wantIs(t, name, call(), store.ErrClosed)
	}
}
