package bolt

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/bkbtuner/bkb/store"
	"github.com/bkbtuner/bkb/tuner/study"
	"go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"
)

func pathError(op string, errno syscall.Errno) error {
	return &fs.PathError{Op: op, Path: "studies.db", Err: errno}
}

// The meaning of a commit's error depends on the error and on whether the transaction
// is visible.
func TestCommitErrors(t *testing.T) {
	growing := errors.New("file resize error: truncate studies.db: no space left on device")
	for _, test := range []struct {
		name    string
		err     error
		written bool // the transaction is visible although the commit failed
		full    bool // the error means that nothing was written
	}{
		{"quota", berrors.ErrMaxSizeReached, false, true},
		{"no space for a page", pathError("write", syscall.ENOSPC), false, true},
		{"disk quota", pathError("write", syscall.EDQUOT), false, true},
		{"file too large", pathError("write", syscall.EFBIG), false, true},
		{"no space to grow", growing, false, true},
		{"no space for half a meta page", pathError("write", syscall.ENOSPC), true, false},
		{"broken disk", pathError("write", syscall.EIO), false, false},
		{"no space when syncing", syscall.ENOSPC, false, false},
		{"sync of the data failed", syscall.EIO, false, false},
		{"sync of the meta page failed", syscall.EIO, true, false},
		{"growing failed otherwise", errors.New("file resize error: truncate studies.db: input/output error"), false, false},
		{"sync of the grown file failed", errors.New("file sync error: no space left on device"), false, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			fault := error(nil)
			path := filepath.Join(t.TempDir(), "studies.db")
			s := mustOpen(t, path, Options{tuning: tuning{commit: func(tx *bbolt.Tx) error {
				if fault == nil {
					return tx.Commit()
				}
				if test.written {
					return errors.Join(tx.Commit(), fault)
				}
				_ = tx.Rollback()
				return fault
			}}})
			info := fill(t, s, "mnist", 5)
			fault = test.err
			err := s.Commit(t.Context(), info.ID, info.Head, trials(5, 1), nil)
			if full := errors.Is(err, store.ErrFull); full != test.full || errors.Is(err, store.ErrUnknownOutcome) == full {
				t.Fatalf("error is %v; want full: %t", err, test.full)
			}
			fault = nil
			if test.full {
				wantPrefix(t, s, "mnist", info.Head)
				fill(t, s, "more", 3)
				return
			}
			wantFailed(t, s, info)
		})
	}
}

// wantFailed checks that a store refuses every call and that the next store has a
// correct state.
func wantFailed(t *testing.T, s *Store, info store.Info) {
	t.Helper()
	select {
	case <-s.Failed():
	default:
		t.Error("the store did not say that it failed")
	}
	_, statErr := s.Stat(t.Context(), info.ID)
	_, createErr := s.Create(t.Context(), "more", []study.Event{opened()})
	var readErr error
	for _, readErr = range s.Read(t.Context(), info.ID, 1) {
	}
	for call, err := range map[string]error{"Stat": statErr, "Create": createErr, "Read": readErr} {
		if !errors.Is(err, store.ErrUnknownOutcome) {
			t.Errorf("%s of a failed store: %v", call, err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	again := mustOpen(t, s.path, Options{})
	wantPrefix(t, again, info.Name, info.Head)
	wantSound(t, again)
}

// A large request for which there is no space does not affect small ones in its batch.
func TestFullBlamesTheLargest(t *testing.T) {
	s := mustOpen(t, filepath.Join(t.TempDir(), "studies.db"), Options{MaxSize: 2 << 20})
	info := fill(t, s, "mnist", 5)
	ctx := t.Context()
	small := &write{ctx: ctx, bytes: 100, apply: func(tx *transaction) error {
		_, err := logAt(tx.Tx, info.ID, info.Head)
		return err
	}, done: make(chan struct{})}
	refused := &write{ctx: ctx, apply: func(tx *transaction) error { return vacant(tx.Tx, "mnist") }, done: make(chan struct{})}
	large := &write{ctx: ctx, bytes: 8 << 20, apply: func(tx *transaction) error { tx.summarize(info.ID, make([]byte, 8<<20)); return nil }, done: make(chan struct{})}
	s.committer.settle([]*write{large, small, refused})
	if !errors.Is(large.err, store.ErrFull) || small.err != nil {
		t.Errorf("the large one: %v; the small one: %v", large.err, small.err)
	}
	if _, ok := errors.AsType[*store.ExistsError](refused.err); !ok {
		t.Errorf("the refused one: %v", refused.err)
	}
}

// A store at its quota refuses to write and still reads. It writes again when there is
// space.
func TestQuota(t *testing.T) {
	path := filepath.Join(t.TempDir(), "studies.db")
	s := mustOpen(t, path, Options{MaxSize: 2 << 20})
	info := fill(t, s, "mnist", 10)
	other := fill(t, s, "other", 2000)
	var full bool
	for !full {
		err := s.Commit(t.Context(), info.ID, info.Head, trials(int(info.Head-1)/3, 100), nil)
		if full = errors.Is(err, store.ErrFull); !full && err != nil {
			t.Fatal(err)
		}
		if !full {
			info.Head += 300
		}
	}
	wantPrefix(t, s, "mnist", info.Head)
	wantSound(t, s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = mustOpen(t, path, Options{MaxSize: 8 << 20})
	wantPrefix(t, s, "mnist", info.Head)
	if err := s.Delete(t.Context(), other.ID); err != nil {
		t.Fatal(err)
	}
	if err := s.Commit(t.Context(), info.ID, info.Head, trials(int(info.Head-1)/3, 100), nil); err != nil {
		t.Fatal(err)
	}
}

// A limit on the size of files simulates a full disk. The test runs in a child because
// the limit applies to the whole process.
func TestFullDisk(t *testing.T) {
	for _, when := range []string{"growing", "writing"} {
		t.Run(when, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "studies.db")
			out, err := child(t, "full", path, when).CombinedOutput()
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			wantSound(t, mustOpen(t, path, Options{}))
		})
	}
}

// fillUp is the child of TestFullDisk.
func fillUp(path, when string) error {
	const limit = 1 << 20
	ctx := context.Background()
	if when == "growing" { // before the first commit grows the file
		s, err := Open(path, Options{})
		if err != nil {
			return err
		}
		if err := limitFiles(limit); err != nil {
			return err
		}
		events := append([]study.Event{opened()}, trials(0, 100)...)
		if _, err = s.Create(ctx, "mnist", events); !errors.Is(err, store.ErrFull) || !strings.Contains(err.Error(), "resize") {
			return fmt.Errorf("creating a study gave %v", err)
		}
		if err := limitFiles(1 << 40); err != nil {
			return err
		}
		_, err = s.Create(ctx, "mnist", events)
		return errors.Join(err, s.Close())
	}
	s, err := Open(path, Options{})
	if err != nil {
		return err
	}
	info, err := s.Create(ctx, "mnist", append([]study.Event{opened()}, trials(0, 100)...)) // grows the file
	if err != nil {
		return err
	}
	if err := limitFiles(limit); err != nil {
		return err
	}
	commit := func() error {
		err := s.Commit(ctx, info.ID, info.Head, trials(int(info.Head-1)/3, 100), nil)
		if err == nil {
			info.Head += 300
		}
		return err
	}
	for err == nil {
		err = commit()
	}
	for range 3 {
		if again := commit(); !errors.Is(err, store.ErrFull) || !errors.Is(again, store.ErrFull) {
			return fmt.Errorf("committing gave %v and then %v", err, again)
		}
	}
	n := 0
	for _, err := range s.Read(ctx, info.ID, 1) {
		if err != nil {
			return err
		}
		n++
	}
	if n != int(info.Head) || n < 600 {
		return fmt.Errorf("read %d events, want %d", n, info.Head)
	}
	if err := limitFiles(1 << 40); err != nil {
		return err
	}
	return errors.Join(commit(), s.Close())
}

// A disk fails to sync. Every result is still true after the next start, and after the
// failure every call returns an unknown outcome.
func TestSyncFails(t *testing.T) {
	strace, err := exec.LookPath("strace")
	if err != nil {
		t.Skip("there is no strace to inject errors with")
	}
	faults := 0
	for k := 1; k <= often(t, "BKB_BOLT_SYNC_FAULTS", 4); k++ {
		path := filepath.Join(t.TempDir(), "studies.db")
		s := mustOpen(t, path, Options{})
		fill(t, s, "few", 1)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		c := child(t, "few", path, "3", strace, "-f", "-qq", "-o", os.DevNull,
			"-e", "trace=fdatasync", "-e", fmt.Sprintf("inject=fdatasync:error=EIO:when=%d", k))
		var complaint strings.Builder
		c.Stderr = &complaint
		out, err := c.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Start(); err != nil {
			t.Skip(err)
		}
		acked := readAcks(out)
		if err := c.Wait(); err != nil {
			if strings.Contains(complaint.String(), "ptrace") {
				t.Skip("tracing is not permitted here")
			}
			t.Fatalf("%v: %s", err, &complaint)
		}
		commits := int(max(acked.heads["few"], headOf(1))-headOf(1)) / 3
		if acked.unknown+commits != 3 {
			t.Errorf("fault %d: head %d, %d unknown", k, acked.heads["few"], acked.unknown)
		}
		if acked.unknown > 0 { // calls are counted by thread, so a late fault may not occur
			faults++
		}
		s = mustOpen(t, path, Options{})
		wantPrefix(t, s, "few", max(acked.heads["few"], headOf(1)))
		wantSound(t, s)
	}
	if faults == 0 {
		t.Error("no fault was ever injected")
	}
}
