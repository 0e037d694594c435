package store_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/bkbtuner/bkb/store"
	"github.com/bkbtuner/bkb/store/memory"
)

func TestLookout(t *testing.T) {
	const ttl = 10 * time.Second
	type look struct {
		at   time.Duration
		beat uint64
	}
	const sec = time.Second
	for name, test := range map[string]struct {
		looks []look
		over  time.Duration // of the first look that finds the lease over, 0 if none does
	}{
		"silent":                {[]look{{0, 1}, {4 * sec, 1}, {8 * sec, 1}, {10*sec - 1, 1}, {10 * sec, 1}}, 10 * sec},
		"renewed":               {[]look{{0, 1}, {4 * sec, 1}, {8 * sec, 2}, {12 * sec, 2}, {16 * sec, 2}, {18*sec - 1, 2}, {18 * sec, 2}}, 18 * sec},
		"renewed by an older":   {[]look{{0, 9}, {4 * sec, 9}, {8 * sec, 3}, {12 * sec, 3}, {16 * sec, 3}, {18 * sec, 3}}, 18 * sec},
		"store away":            {[]look{{0, 1}, {4 * sec, 1}, {9*sec + 1, 1}, {14 * sec, 1}, {19 * sec, 1}, {19*sec + 1, 1}}, 19*sec + 1},
		"away for days":         {[]look{{0, 1}, {100 * time.Hour, 1}, {100*time.Hour + 5*sec, 1}}, 0},
		"half a lease, no more": {[]look{{0, 1}, {5 * sec, 1}, {10 * sec, 1}}, 10 * sec},
	} {
		now, over := time.Duration(0), time.Duration(0)
		l := store.NewLookout(func() time.Duration { return now })
		for _, k := range test.looks {
			now = k.at
			if l.See(store.Server{ID: 1, TTL: ttl, Beat: k.beat}) && over == 0 {
				over = k.at
			}
			if gone := l.Gone(1); gone != (over != 0) {
				t.Errorf("%s: gone after %v: %t", name, k.at, gone)
			}
		}
		if over != test.over {
			t.Errorf("%s: over after %v, want %v", name, over, test.over)
		}
	}
}

// TestLookoutAtStore checks what the looks at a store find, and what they forget.
func TestLookoutAtStore(t *testing.T) {
	s, now := memory.New(), time.Duration(0)
	defer s.Close()
	l := store.NewLookout(func() time.Duration { return now })
	want := func(gone bool, id store.ServerID) {
		t.Helper()
		if got := l.Gone(id); got != gone {
			t.Errorf("after %v server %d is gone: %t", now, id, got)
		}
	}
	look := func() {
		t.Helper()
		if _, err := l.Look(t.Context(), s); err != nil {
			t.Fatal(err)
		}
	}
	var ids [2]store.ServerID
	for i := range ids {
		var err error
		if ids[i], err = s.Register(t.Context(), "a:1", time.Second); err != nil {
			t.Fatal(err)
		}
	}
	want(true, ids[0])
	for ; now < 3*time.Second; now += 100 * time.Millisecond {
		if err := s.Renew(t.Context(), ids[0], uint64(now)); err != nil {
			t.Fatal(err)
		}
		look()
		want(false, ids[0])
		want(now >= time.Second, ids[1])
	}
	look()
	l.Restart()
	want(false, ids[1])
	now += 500 * time.Millisecond
	look()
	want(false, ids[1])
	now += 500 * time.Millisecond
	look()
	want(true, ids[1])
	if err := s.Unregister(t.Context(), ids[0]); err != nil {
		t.Fatal(err)
	}
	now++
	look()
	want(true, ids[0])
}

func TestOutlive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memory.New()
		defer s.Close()
		register := func() store.Server {
			id, err := s.Register(t.Context(), "a:1", 10*time.Second)
			if err != nil {
				t.Fatal(err)
			}
			return store.Server{ID: id, Address: "a:1", TTL: 10 * time.Second}
		}
		silent, living, leaving := register(), register(), register()
		for _, test := range []struct {
			v    store.Server
			do   func() error
			gone bool
			most time.Duration
		}{
			{silent, func() error { return nil }, true, 11 * time.Second},
			{living, func() error { return s.Renew(t.Context(), living.ID, 1) }, false, 3 * time.Second},
			{leaving, func() error { return s.Unregister(t.Context(), leaving.ID) }, true, 3 * time.Second},
		} {
			begun := time.Now()
			go func() {
				time.Sleep(2 * time.Second)
				if err := test.do(); err != nil {
					t.Error(err)
				}
			}()
			gone, err := store.Outlive(t.Context(), s, test.v)
			if took := time.Since(begun); gone != test.gone || err != nil || took > test.most {
				t.Errorf("server %d is gone after %v: %t, %v", test.v.ID, took, gone, err)
			}
		}
		if all, err := s.Servers(t.Context()); err != nil || len(all) != 1 || all[0].ID != living.ID {
			t.Errorf("servers %v, %v, want %d", all, err, living.ID)
		}
	})
}
