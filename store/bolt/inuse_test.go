package bolt

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/bkbtuner/bkb/store"
	"github.com/bkbtuner/bkb/tuner/study"
)

// If a file is truncated while many clients use it, every call returns an error that
// says that the store is damaged, and the store closes. If the fault occurs while the
// bbolt begins a transaction, bbolt holds its locks forever.
func TestCutInUse(t *testing.T) {
	for _, size := range []int64{0, 4096, 8192, 12288, 20480} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			whole, held := collection(t)
			path := filepath.Join(t.TempDir(), "studies.db")
			writeFile(t, path, whole)
			s, err := Open(path, Options{tuning: tuning{watch: time.Hour}})
			if err != nil {
				t.Fatal(err)
			}
			if err := os.Truncate(path, size); err != nil {
				t.Fatal(err)
			}
			in := held.infos[0]
			var calls sync.WaitGroup
			for i := range 8 {
				calls.Go(func() {
					for s.Failure() == nil {
						_, _ = s.Stat(t.Context(), in.ID)
						_ = s.Commit(t.Context(), in.ID, in.Head, trials(1000*i, 1), nil)
						for range s.Read(t.Context(), in.ID, 1) {
						}
					}
				})
			}
			within(t, time.Minute, "the calls", calls.Wait)
			_, statErr := s.Stat(t.Context(), in.ID)
			_, createErr := s.Create(t.Context(), "more", []study.Event{opened()})
			for call, err := range map[string]error{"Stat": statErr, "Create": createErr, "Failure": s.Failure()} {
				if !errors.Is(err, store.ErrDamaged) || errors.Is(err, store.ErrUnknownOutcome) {
					t.Errorf("%s of a file that was cut: %v", call, err)
				}
			}
			within(t, time.Minute, "closing", func() { _ = s.Close() })
		})
	}
}

func within(t *testing.T, limit time.Duration, what string, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() { defer close(done); f() }()
	select {
	case <-done:
	case <-time.After(limit):
		t.Fatalf("%s took more than %s", what, limit)
	}
}

// A file that is no longer at its path stops the store, and so does a truncated one,
// even without a call.
func TestGoneInUse(t *testing.T) {
	for name, test := range map[string]struct {
		do     func(path string) error
		reason error
		says   string
	}{
		"removed": {os.Remove, ErrMoved, "nothing at this path"},
		"renamed": {func(path string) error { return os.Rename(path, path+".old") }, ErrMoved, "nothing at this path"},
		"replaced": {func(path string) error {
			return errors.Join(os.Rename(path, path+".old"), os.WriteFile(path, nil, 0o600))
		}, ErrMoved, "another file"},
		"cut": {func(path string) error { return os.Truncate(path, 4096) }, ErrDamaged, "truncated"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "studies.db")
			s := mustOpen(t, path, Options{tuning: tuning{watch: 10 * time.Millisecond}})
			info := fill(t, s, "mnist", 5)
			time.Sleep(50 * time.Millisecond)
			if err := s.Failure(); err != nil {
				t.Fatal(err)
			}
			if err := test.do(path); err != nil {
				t.Fatal(err)
			}
			select {
			case <-s.Failed():
			case <-time.After(time.Minute):
				t.Fatal("the store did not notice")
			}
			_, err := s.Stat(t.Context(), info.ID)
			if !errors.Is(err, test.reason) || !strings.Contains(err.Error(), test.says) || !strings.Contains(err.Error(), path) {
				t.Errorf("a call says %v", err)
			}
		})
	}
}

// A hard link and a symbolic link lead to the same lock, and name its holder.
func TestLinkInUse(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "studies.db")
	s := mustOpen(t, path, Options{})
	fill(t, s, "mnist", 5)
	hard, symbolic := filepath.Join(dir, "hard.db"), filepath.Join(dir, "symbolic.db")
	if err := errors.Join(os.Link(path, hard), os.Symlink(path, symbolic)); err != nil {
		t.Skip(err)
	}
	for _, link := range []string{hard, symbolic} {
		_, err := Open(link, Options{LockTimeout: -1})
		refusal, ok := errors.AsType[*FileError](err)
		if !ok || !errors.Is(err, ErrInUse) {
			t.Fatalf("%s: %v", link, err)
		}
		if refusal.PID != 0 && refusal.PID != os.Getpid() {
			t.Errorf("%s is in use by %d, want %d: %v", link, refusal.PID, os.Getpid(), err)
		}
	}
}

// If there is not enough address space for the file to grow, it is opened without a
// reserve.
func TestLittleAddressSpace(t *testing.T) {
	path := filepath.Join(t.TempDir(), "studies.db")
	s := mustOpen(t, path, Options{})
	fill(t, s, "few", 1)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	out, err := child(t, "few", path, "3", "sh", "-c", `ulimit -v 4000000 || exit 99; exec "$@"`, "sh").CombinedOutput()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.ExitCode() == 99 {
		t.Skip("there is no ulimit -v")
	}
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	wantSound(t, mustOpen(t, path, Options{}))
}

// If there is no memory at all, the error says how to fix it.
func TestNoMemoryIsExplained(t *testing.T) {
	err := explainOpen("studies.db", fmt.Errorf("mmap allocate error: %w", syscall.ENOMEM))
	if !errors.Is(err, ErrNoMemory) || !errors.Is(err, syscall.ENOMEM) || !strings.Contains(err.Error(), "ulimit -v") {
		t.Errorf("error is %v", err)
	}
}
