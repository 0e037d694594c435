package bolt

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/bkbtuner/bkb/store"
	"github.com/bkbtuner/bkb/tuner/study"
	"go.etcd.io/bbolt"
)

func textLogger(w io.Writer) *slog.Logger { return slog.New(slog.NewTextHandler(w, nil)) }

// A copy made during writes is a sound store. It holds everything that was acknowledged
// before the copy began.
func TestBackupUnderLoad(t *testing.T) {
	dir := t.TempDir()
	s := mustOpen(t, filepath.Join(dir, "studies.db"), Options{})
	fill(t, s, "still", 300)
	ctx, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	heads := make([]atomic.Uint64, 8)
	for w := range heads {
		info := fill(t, s, fmt.Sprint("w", w), 1)
		heads[w].Store(uint64(info.Head))
		wg.Go(func() {
			for trial := 1; ctx.Err() == nil; trial++ {
				if err := s.Commit(t.Context(), info.ID, headOf(trial), trials(trial, 1), nil); err != nil {
					t.Error(err)
					return
				}
				heads[w].Store(uint64(headOf(trial + 1)))
			}
		})
	}
	for i := range 5 {
		var before [8]study.Position
		for w := range heads {
			before[w] = study.Position(heads[w].Load())
		}
		path := filepath.Join(dir, fmt.Sprintf("backup-%d.db", i))
		backUp(t, s, path)
		report, err := s.Check(t.Context(), nil) // checks the live store during the writes
		if err != nil || !report.OK() || report.Studies != 9 {
			t.Fatalf("check: %+v, %v", report, err)
		}
		backup := mustOpen(t, path, Options{MustExist: true})
		for w, head := range before {
			wantPrefix(t, backup, fmt.Sprint("w", w), head)
		}
		wantSound(t, backup)
		fill(t, backup, "goes-on", 2)
	}
	stop()
	wg.Wait()
	if err := s.Backup(ctx, io.Discard); !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled backup: %v", err)
	}
	if leftovers, _ := filepath.Glob(filepath.Join(dir, ".*")); len(leftovers) != 0 {
		t.Errorf("temporary files are left: %v", leftovers)
	}
}

func TestCompact(t *testing.T) {
	dir := t.TempDir()
	path, keep := filepath.Join(dir, "studies.db"), filepath.Join(dir, "studies.db.bak")
	s := mustOpen(t, path, Options{})
	var infos []store.Info
	for i := range 6 {
		infos = append(infos, fill(t, s, fmt.Sprint("study-", i), 500))
	}
	if err := s.SaveSummaries(t.Context(), []store.Summary{{Study: infos[1].ID, Position: infos[1].Head, Data: make([]byte, 30_000)}}); err != nil {
		t.Fatal(err)
	}
	for _, info := range infos[2:] {
		if err := s.Delete(t.Context(), info.ID); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := Compact(t.Context(), path, CompactOptions{Open: Options{LockTimeout: -1}}); !errors.Is(err, ErrInUse) {
		t.Errorf("compacting a store that is open: %v", err)
	}
	identity := s.identity
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	var told int
	before, after, err := Compact(t.Context(), path, CompactOptions{Keep: keep, Progress: func(int, int, string) { told++ }})
	if err != nil {
		t.Fatal(err)
	}
	if after*2 > before || told != 3 {
		t.Errorf("from %d to %d bytes, told %d times", before, after, told)
	}
	for _, path := range []string{path, keep} {
		s := mustOpen(t, path, Options{})
		for _, info := range infos[:2] {
			wantPrefix(t, s, info.Name, info.Head)
		}
		for _, info := range infos[2:] {
			wantNotFound(t, s, info.ID)
		}
		if list, err := s.Summaries(t.Context(), []store.StudyID{infos[1].ID}); err != nil || len(list) != 1 || len(list[0].Data) != 30_000 {
			t.Errorf("the summary was lost: %v, %v", list, err)
		}
		if s.identity != identity {
			t.Errorf("the identity is %+v, was %+v", s.identity, identity)
		}
		if fresh := fill(t, s, "fresh", 1); fresh.ID <= infos[5].ID {
			t.Errorf("the id %d was given out again", fresh.ID)
		}
		wantSound(t, s)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := Compact(t.Context(), path, CompactOptions{Keep: keep}); !errors.Is(err, ErrAlreadyExists) {
		t.Errorf("keeping the original where there is a file: %v", err)
	}
	if names, _ := os.ReadDir(dir); len(names) != 2 {
		t.Errorf("the directory has %v", names)
	}
}

// Compact refuses a damaged file and does not make a sound file of it.
func TestCompactDamaged(t *testing.T) {
	whole, held := collection(t)
	path := filepath.Join(t.TempDir(), "studies.db")
	writeFile(t, path, whole)
	update(t, path, func(tx *bbolt.Tx) error {
		return tx.Bucket(bucketLogs).Bucket(idKey(held.infos[0].ID)).Put(posKey(2), []byte("not a record"))
	})
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := Compact(t.Context(), path, CompactOptions{}); err == nil || !strings.Contains(err.Error(), "unchanged") {
		t.Errorf("compacting: %v", err)
	}
	if after, err := os.ReadFile(path); err != nil || !bytes.Equal(before, after) {
		t.Errorf("the original has changed (%v)", err)
	}
}

// Two processes never write to one store. The error of the second names the first.
func TestLock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "studies.db")
	mustOpen(t, path, Options{}).Close() //nolint:errcheck // tested elsewhere
	c := child(t, "hold", path, "")
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(out, make([]byte, 4)); err != nil {
		t.Fatal(err)
	}
	for _, o := range []Options{{LockTimeout: 30 * time.Millisecond}, {LockTimeout: -1, ReadOnly: true}} {
		_, err = Open(path, o)
		e, ok := errors.AsType[*FileError](err)
		if !ok || !errors.Is(err, ErrInUse) || e.PID != 0 && e.PID != c.Process.Pid || !strings.Contains(err.Error(), "stop that process") {
			t.Errorf("opening a store that is in use: %v, pid %d; want pid %d or none", err, e.PID, c.Process.Pid)
		}
	}
	opened := make(chan error)
	go func() { // waits for the other one to end
		s, err := Open(path, Options{LockTimeout: time.Minute})
		if err == nil {
			err = s.Close()
		}
		opened <- err
	}()
	_ = in.Close()
	if err := errors.Join(c.Wait(), <-opened); err != nil {
		t.Fatal(err)
	}
}

// If the file is replaced while a process waits for its lock, the process gets the new
// file.
func TestLockFollowsTheName(t *testing.T) {
	dir := t.TempDir()
	path, other := filepath.Join(dir, "studies.db"), filepath.Join(dir, "other.db")
	s := mustOpen(t, path, Options{})
	fill(t, s, "old", 1)
	next := mustOpen(t, other, Options{})
	fill(t, next, "new", 1)
	if err := next.Close(); err != nil {
		t.Fatal(err)
	}
	found := make(chan error)
	go func() {
		s, err := Open(path, Options{LockTimeout: time.Minute})
		if err == nil {
			_, err = s.Lookup(t.Context(), "new")
			err = errors.Join(err, s.Close())
		}
		found <- err
	}()
	time.Sleep(20 * time.Millisecond) // most likely it waits by now, and the test is valid in any case
	if err := errors.Join(os.Rename(other, path), s.Close(), <-found); err != nil {
		t.Error(err)
	}
}

// 64 clients commit to one study, each retrying until it wins, and to a study each.
func TestManyClients(t *testing.T) {
	s := mustOpen(t, filepath.Join(t.TempDir(), "studies.db"), Options{})
	shared := fill(t, s, "shared", 0)
	commits := 5
	if testing.Short() {
		commits = 2
	}
	var wg sync.WaitGroup
	for c := range clients {
		wg.Go(func() {
			own, err := s.Create(t.Context(), fmt.Sprint("own-", c), []study.Event{opened()})
			if err != nil {
				t.Error(err)
				return
			}
			for i := range commits {
				if err := s.Commit(t.Context(), own.ID, headOf(i), trials(i, 1), nil); err != nil {
					t.Error(err)
				}
				winPosition(t, s, shared.ID)
			}
		})
	}
	wg.Wait()
	wantPrefix(t, s, "shared", headOf(clients*commits))
	for c := range clients {
		wantPrefix(t, s, fmt.Sprint("own-", c), headOf(commits))
	}
	status, err := s.Status(t.Context())
	if err != nil || s.committer.studies.Load() != clients+1 || status.FileBytes < status.UsedBytes {
		t.Errorf("the status is %+v, %v", status, err)
	}
	wantSound(t, s)
}

// winPosition commits the next trial of a log to which others write.
func winPosition(t *testing.T, s *Store, id store.StudyID) {
	info, err := s.Stat(t.Context(), id)
	head := info.Head
	for {
		if err == nil {
			err = s.Commit(t.Context(), id, head, trials(int(head-1)/3, 1), nil)
		}
		conflict, ok := errors.AsType[*store.ConflictError](err)
		if !ok {
			break
		}
		head, err = conflict.Actual, nil
	}
	if err != nil {
		t.Error(err)
	}
}

// A request whose context ended before the committer took it has no effect and does not
// affect others in its batch.
func TestRefusedBesideOthers(t *testing.T) {
	s := mustOpen(t, filepath.Join(t.TempDir(), "studies.db"), Options{})
	info := fill(t, s, "mnist", 1)
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	commit := func(ctx context.Context, expected study.Position, n int) *write {
		records, err := store.EncodeCommit(info.ID, expected, trials(n, 1))
		if err != nil {
			t.Fatal(err)
		}
		return &write{ctx: ctx, done: make(chan struct{}), apply: func(tx *transaction) error {
			log, err := logAt(tx.Tx, info.ID, expected)
			if err == nil {
				appendRecords(log, expected, records)
			}
			return err
		}}
	}
	batch := []*write{
		commit(cancelled, headOf(1), 1), commit(t.Context(), headOf(1), 1), commit(t.Context(), headOf(1), 1), commit(t.Context(), headOf(2), 2),
	}
	s.committer.settle(batch)
	_, conflict := errors.AsType[*store.ConflictError](batch[2].err)
	if !errors.Is(batch[0].err, context.Canceled) || batch[1].err != nil || !conflict || batch[3].err != nil {
		t.Errorf("the answers are %v, %v, %v, %v", batch[0].err, batch[1].err, batch[2].err, batch[3].err)
	}
	wantPrefix(t, s, "mnist", headOf(3))
}

// A request whose context ends while others are written, by a disk that does not answer, ends too,
// without effect.
func TestWithdrawn(t *testing.T) {
	var slow atomic.Bool
	writing, answers := make(chan struct{}), make(chan struct{})
	s := mustOpen(t, filepath.Join(t.TempDir(), "studies.db"), Options{tuning: tuning{commit: func(tx *bbolt.Tx) error {
		if slow.Load() {
			writing <- struct{}{}
			<-answers
		}
		return tx.Commit()
	}}})
	info := fill(t, s, "mnist", 1)
	slow.Store(true)
	var first sync.WaitGroup
	first.Go(func() {
		if err := s.Commit(t.Context(), info.ID, info.Head, trials(1, 1), nil); err != nil {
			t.Errorf("the request that is written: %v", err)
		}
	})
	<-writing
	slow.Store(false)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if err := s.Delete(ctx, info.ID); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the request that waits: %v", err)
	}
	close(answers)
	first.Wait()
	fill(t, s, "more", 1)
	wantPrefix(t, s, "mnist", headOf(2))
}

// A request that a transaction cannot execute stops the store, and earlier data remain.
func TestImpossibleRequest(t *testing.T) {
	s := mustOpen(t, filepath.Join(t.TempDir(), "studies.db"), Options{})
	info := fill(t, s, "mnist", 2)
	err := s.committer.submit(t.Context(), 0, func(tx *transaction) error {
		must(tx.Bucket(bucketMeta).Put(nil, nil))
		return nil
	})
	if !errors.Is(err, store.ErrUnknownOutcome) {
		t.Errorf("error is %v", err)
	}
	wantFailed(t, s, info)
}

// backUp makes a copy at path.
func backUp(t *testing.T, s *Store, path string) {
	t.Helper()
	var copied bytes.Buffer
	if err := s.Backup(t.Context(), &copied); err != nil {
		t.Fatal(err)
	}
	writeFile(t, path, copied.Bytes())
}
