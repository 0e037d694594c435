package backups

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/bkbtuner/bkb/internal/atomicfile"
	"github.com/bkbtuner/bkb/store/bolt"
)

// keeper keeps the backups of a new store.
func keeper(t *testing.T, dir string) *Keeper {
	t.Helper()
	s, err := bolt.Open(filepath.Join(t.TempDir(), "studies.db"), bolt.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	return &Keeper{
		Plan: Plan{Dir: dir, Keep: 2}, Logger: slog.New(slog.DiscardHandler),
		Write: s.Backup,
		Now:   func() time.Time { now = now.Add(time.Second); return now },
	}
}

func names(t *testing.T, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// The newest are kept, and what else is in the directory is left alone.
func TestRotation(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "backups")
	k, other := keeper(t, dir), keeper(t, dir)
	if _, err := other.Once(t.Context()); err != nil {
		t.Fatal(err)
	}
	mine := filepath.Join(dir, "tuner-precious.db")
	if err := os.WriteFile(mine, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	var last []string
	for range 5 {
		b, err := k.Once(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		last = append(last, filepath.Base(b.Path))
	}
	have := strings.Join(names(t, dir), " ")
	for i, name := range last {
		if kept := strings.Contains(have, name); kept != (i >= 3) {
			t.Errorf("backup %d of 5 is kept: %t", i+1, kept)
		}
	}
	if n := len(names(t, dir)); n != 4 {
		t.Errorf("%d files are there, want 2 backups, 1 of another store, and 1 of mine: %s", n, have)
	}
}

// Backups that are dated in the future, as by a clock that was wrong, take no place of the
// others, and neither do empty files.
func TestFutureAndEmptyBackups(t *testing.T) {
	dir := t.TempDir()
	k := keeper(t, dir)
	var log strings.Builder
	k.Logger = slog.New(slog.NewTextHandler(&log, nil))
	first, err := k.Once(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	prefix := strings.TrimSuffix(first.Path, first.Time.Format(timeLayout)+".db")
	for i, size := range []int{1, 1, 1, 0, 0} {
		path := prefix + time.Date(2099, 1, i+1, 0, 0, 0, 0, time.UTC).Format(timeLayout) + ".db"
		if err := os.WriteFile(path, make([]byte, size), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	made := []string{first.Path}
	for range 2 {
		b, err := k.Once(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		made = append(made, b.Path)
	}
	have := names(t, dir)
	if len(have) != 6 || have[0] != filepath.Base(made[1]) || have[1] != filepath.Base(made[2]) || !strings.Contains(have[2], "20990102") || !strings.Contains(have[3], "20990103") {
		t.Errorf("there are %v, want the last two backups %v, the last two of the future, and the two empty files", have, made[1:])
	}
	if !strings.Contains(log.String(), "dated in the future") {
		t.Error("the log says nothing of the future")
	}
	if at := k.Newest().UTC().Format(timeLayout); !strings.Contains(made[2], at) {
		t.Errorf("the newest is of %s, want %s", at, made[2])
	}
}

// Of several backups the latest is restored, in any order, and one dated in the future only
// if there is no other.
func TestLatest(t *testing.T) {
	now := time.Date(2026, 1, 3, 0, 0, 0, 0, time.UTC)
	name := func(store, day string) string { return "dir/tuner-" + store + "-" + day + "T030405.000Z.db" }
	old, last, wrong, worse := name("0a1b2c3d", "20260101"), name("0a1b2c3d", "20260102"), name("0a1b2c3d", "20990101"), name("0a1b2c3d", "20990102")
	for _, test := range []struct {
		want  string
		paths []string
	}{
		{last, []string{old, last}},
		{last, []string{last, old}},
		{last, []string{last, wrong, old}},
		{last, []string{wrong, old, worse, last}},
		{worse, []string{wrong, worse}},
		{worse, []string{worse, wrong}},
		{"any.db", []string{"any.db"}},
	} {
		if got, err := Latest(test.paths, now); got != test.want || err != nil {
			t.Errorf("of %v: %s, %v, want %s", test.paths, got, err, test.want)
		}
	}
	for want, paths := range map[string][]string{"name one of them": {old, "any.db"}, "different stores": {old, name("ffffffff", "20260102")}} {
		if got, err := Latest(paths, now); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("of %v: %s, %v", paths, got, err)
		}
	}
}

// A backup that fails leaves everything as it was.
func TestFailedBackup(t *testing.T) {
	dir := t.TempDir()
	k := keeper(t, dir)
	if _, err := k.Once(t.Context()); err != nil {
		t.Fatal(err)
	}
	before := fmt.Sprint(names(t, dir))
	whole := k.Write
	for what, write := range map[string]func(context.Context, io.Writer) error{
		"an error": func(_ context.Context, w io.Writer) error {
			_, _ = w.Write([]byte("BKB"))
			return errors.New("no")
		},
		"half a copy": func(ctx context.Context, w io.Writer) error { return whole(ctx, &half{w: w}) },
		"nothing":     func(context.Context, io.Writer) error { return nil },
	} {
		k.Write = write
		var told error
		k.Done = func(_ Backup, err error) { told = err }
		if _, err := k.Once(t.Context()); err == nil || !errors.Is(told, err) {
			t.Errorf("%s: %v, and %v was told", what, err, told)
		}
		if after := fmt.Sprint(names(t, dir)); after != before {
			t.Errorf("after %s there are %s, want %s", what, after, before)
		}
	}
	k.Write, k.Size = whole, func() int64 { return 1 << 60 }
	if _, err := k.Once(t.Context()); err == nil || !strings.Contains(err.Error(), "free") {
		t.Errorf("a copy that is larger than the disk: %v", err)
	}
}

// half drops what comes after the first 8 KiB.
type half struct {
	w io.Writer
	n int
}

func (h *half) Write(b []byte) (int, error) {
	if h.n < 8192 {
		_, _ = h.w.Write(b[:min(len(b), 8192-h.n)])
	}
	h.n += len(b)
	return len(b), nil
}

// The leftovers of a killed process are removed. A file that another one writes is not.
func TestSweep(t *testing.T) {
	dir := t.TempDir()
	unnamed := filepath.Join(dir, ".tuner")
	killed, err := atomicfile.New(unnamed, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	killed.Close()
	f, err := atomicfile.New(unnamed, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	left, written := killed.Name(), f.Name()
	if _, err := keeper(t, dir).Once(t.Context()); err != nil {
		t.Fatal(err)
	}
	have := strings.Join(names(t, dir), " ")
	if strings.Contains(have, filepath.Base(left)) || !strings.Contains(have, filepath.Base(written)) {
		t.Errorf("there are %s", have)
	}
}

// A server that restarts makes no backup before one is due.
func TestRunWaits(t *testing.T) {
	dir := t.TempDir()
	k := keeper(t, dir)
	k.Now, k.Every = nil, time.Hour
	made := make(chan Backup, 8)
	k.Done = func(b Backup, err error) {
		if err == nil {
			made <- b
		}
	}
	run := func(limit time.Duration) {
		ctx, cancel := context.WithTimeout(t.Context(), limit)
		defer cancel()
		if err := k.Run(ctx); err != nil {
			t.Fatal(err)
		}
	}
	run(500 * time.Millisecond)
	run(100 * time.Millisecond)
	if len(made) != 1 {
		t.Errorf("%d backups were made, want 1", len(made))
	}
}
