package bolt

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/bkbtuner/bkb/store"
	"github.com/bkbtuner/bkb/store/storetest/eventtest"
	"github.com/bkbtuner/bkb/tuner/study"
)

// often returns how often to repeat a test, which is the environment variable or n, and
// a fifth of that with -short.
func often(t *testing.T, variable string, n int) int {
	t.Helper()
	s := os.Getenv(variable)
	if s == "" && testing.Short() {
		return max(n/5, 4)
	} else if s == "" {
		return n
	}
	n, err := strconv.Atoi(s)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// seeded returns a random generator and logs its seed, with which a failure can be
// repeated.
func seeded(t *testing.T) *rand.Rand {
	seed := rand.Uint64()
	if s := os.Getenv("BKB_BOLT_SEED"); s != "" {
		seed, _ = strconv.ParseUint(s, 10, 64)
	}
	t.Logf("BKB_BOLT_SEED=%d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}

// Acknowledged commits are there, whole, after kill -9.
func TestKill(t *testing.T) {
	path := filepath.Join(t.TempDir(), "studies.db")
	random := seeded(t)
	total := 0
	for round := range often(t, "BKB_BOLT_KILLS", 8) {
		acked := killed(t, path, fmt.Sprint("r", round), time.Duration(random.IntN(60))*time.Millisecond)
		s := mustOpen(t, path, Options{})
		for name, head := range acked.heads {
			total += int(head)
			wantPrefix(t, s, name, head)
		}
		for _, id := range acked.gone {
			wantNotFound(t, s, id)
		}
		wantSound(t, s)
		sweep(t, s)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if total == 0 {
		t.Error("nothing was ever acknowledged before the kill")
	}
	t.Logf("%d acknowledged events", total)
}

// killed runs a writing child and kills it some time after its first line.
func killed(t *testing.T, path, tag string, after time.Duration) acked {
	t.Helper()
	c := child(t, "write", path, tag)
	c.Stderr = os.Stderr
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(out)
	if _, err := lines.Peek(1); err != nil && err != io.EOF {
		t.Fatal(err)
	}
	timer := time.AfterFunc(after, func() { _ = c.Process.Kill() })
	defer timer.Stop()
	acked := readAcks(lines)
	_ = c.Wait()
	return acked
}

// wantPrefix checks that a log holds the expected events, at least up to head, and ends
// with a whole commit.
func wantPrefix(t *testing.T, s *Store, name string, head study.Position) {
	t.Helper()
	info, err := s.Lookup(t.Context(), name)
	if err != nil {
		t.Fatalf("study %s: %v", name, err)
	}
	if info.Head < head || info.Head%3 != 1 {
		t.Fatalf("study %s ends at %d; acknowledged was %d", name, info.Head, head)
	}
	wantEvents(t, s, name, append([]study.Event{opened()}, trials(0, int(info.Head-1)/3)...))
}

// wantEvents checks that a study's log holds these events.
func wantEvents(t *testing.T, s *Store, name string, want []study.Event) {
	t.Helper()
	info, err := s.Lookup(t.Context(), name)
	if err != nil || int(info.Head) != len(want) {
		t.Fatalf("study %s ends at %d, want %d: %v", name, info.Head, len(want), err)
	}
	for r, err := range s.Read(t.Context(), info.ID, 1) {
		if err != nil {
			t.Fatalf("study %s: %v", name, err)
		}
		if !sameEvent(want[r.Position-1], r.Event) {
			t.Fatalf("study %s: event %d differs: %s", name, r.Position, eventtest.Diff(want[r.Position-1], r.Event))
		}
	}
}

func sameEvent(a, b study.Event) bool {
	x, errX := store.AppendRecord(nil, 1, 1, a)
	y, errY := store.AppendRecord(nil, 1, 1, b)
	return errX == nil && errY == nil && string(x) == string(y)
}

// wantSound checks the whole file, also with bbolt's own check.
func wantSound(t *testing.T, s *Store) {
	t.Helper()
	report, err := s.Check(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range report.Problems {
		t.Errorf("check: %v", p)
	}
	tx, err := s.db.Begin(true) // no other transaction writes meanwhile
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }()
	for err := range tx.Check() {
		t.Errorf("bbolt's check: %v", err)
	}
}

// sweep deletes all studies, so that the next round begins with a small store.
func sweep(t *testing.T, s *Store) {
	t.Helper()
	for info, err := range s.List(t.Context(), "") {
		if err == nil {
			err = s.Delete(t.Context(), info.ID)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func wantNotFound(t *testing.T, s *Store, id store.StudyID) {
	t.Helper()
	if info, err := s.Stat(context.Background(), id); err == nil {
		t.Errorf("study %d was deleted, but is there: %+v", id, info)
	}
}
