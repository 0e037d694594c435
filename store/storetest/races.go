package storetest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/bkbtuner/bkb/store"
	"github.com/bkbtuner/bkb/tuner/study"
)

const writers = 6

// commitsPerWriter is how often each writer wins. It is less with -short, because all
// writers race for every commit.
func commitsPerWriter() int {
	if testing.Short() {
		return 8
	}
	return 25
}

// testWinners lets writers compete for every position and compares the log with the
// commits that the winners remember.
func testWinners(t *testing.T, f *fixture) {
	info := f.create(t, "mnist", 0)
	var mu sync.Mutex
	won := map[study.Position]string{1: created().Request.ID}
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			err := compete(t.Context(), f, info.ID, w, func(pos study.Position, mark string) {
				mu.Lock()
				defer mu.Unlock()
				if other, taken := won[pos]; taken {
					t.Errorf("both %s and %s were told that they won position %d", mark, other, pos)
				}
				won[pos] = mark
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	events := f.read(t, info.ID, 1)
	if len(events) != len(won) {
		t.Errorf("the log has %d events, the winners remember %d", len(events), len(won))
	}
	for i, e := range events {
		if pos := study.Position(i + 1); won[pos] != e.Request.ID {
			t.Errorf("position %d holds %s, but %s won it", pos, e.Request.ID, won[pos])
		}
	}
}

// compete commits groups of one to three events. Each is marked writer/commit/rest,
// where rest is the number of events that follow in the group.
func compete(ctx context.Context, s store.Store, id store.StudyID, writer int, win func(study.Position, string)) error {
	head := study.Position(1)
	for c := 0; c < commitsPerWriter(); {
		var events []study.Event
		for rest := c % 3; rest >= 0; rest-- {
			events = append(events, marked("%d/%d/%d", writer, c, rest))
		}
		err := s.Commit(ctx, id, head, events, nil)
		if conflict, ok := errors.AsType[*store.ConflictError](err); ok {
			if conflict.Actual <= head {
				return fmt.Errorf("a conflict at %d although the head was at %d", head, conflict.Actual)
			}
			head = conflict.Actual
			continue
		}
		if err != nil {
			return err
		}
		for _, e := range events {
			head++
			win(head, e.Request.ID)
		}
		c++
	}
	return nil
}

// testReaders reads while writers write. A reader always gets a prefix of the final log
// that ends with a whole commit and never gets shorter.
func testReaders(t *testing.T, f *fixture) {
	info := f.create(t, "mnist", 0)
	done := make(chan struct{})
	var readers, writing sync.WaitGroup
	prefixes := make([][]string, 3)
	for i := range prefixes {
		readers.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				marks, err := readWhole(t.Context(), f, info.ID)
				if err != nil || len(marks) < len(prefixes[i]) {
					t.Errorf("read %d events after %d: %v", len(marks), len(prefixes[i]), err)
					return
				}
				prefixes[i] = marks
			}
		})
	}
	for w := range writers {
		writing.Go(func() {
			if err := compete(t.Context(), f, info.ID, w, func(study.Position, string) {}); err != nil {
				t.Error(err)
			}
		})
	}
	writing.Wait()
	close(done)
	readers.Wait()
	all, err := readWhole(t.Context(), f, info.ID)
	ok(t, "the call", err)
	for _, prefix := range prefixes {
		for i, m := range prefix {
			if all[i] != m {
				t.Fatalf("a reader saw %s at position %d, which holds %s", m, i+1, all[i])
			}
		}
	}
}

// readWhole reads the marks of a log. It fails if the last commit is incomplete or if
// the log is shorter than Stat said before.
func readWhole(ctx context.Context, s store.Store, id store.StudyID) ([]string, error) {
	info, err := s.Stat(ctx, id)
	if err != nil {
		return nil, err
	}
	events, err := collect(ctx, s, id, 1)
	if err != nil {
		return nil, err
	}
	if len(events) < int(info.Head) {
		return nil, fmt.Errorf("read %d events after the head was at %d", len(events), info.Head)
	}
	marks := make([]string, len(events))
	for i, e := range events {
		marks[i] = e.Request.ID
	}
	if last := marks[len(marks)-1]; len(marks) > 1 && last[len(last)-2:] != "/0" {
		return nil, fmt.Errorf("the log ends in the middle of a commit, with %s", last)
	}
	return marks, nil
}
