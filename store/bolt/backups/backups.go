// Package backups keeps copies of a study store in a directory. It writes a copy from
// time to time, checks it, and removes the oldest.
//
// A copy is written under a hidden name, synced, checked, and renamed. So every file with
// the name of a backup is complete, even if the process or the machine stops at any time.
// The next backup removes the leftovers of a killed process.
//
// Names are tuner-STORE-TIME.db with the first digits of the store's identity and the time in
// UTC. They sort by age. Backups of other stores in the same directory are left alone.
package backups

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/bkbtuner/bkb/internal/atomicfile"
	"github.com/bkbtuner/bkb/store/bolt"
)

const (
	timeLayout = "20060102T150405.000Z"
	idDigits   = 8
)

var named = regexp.MustCompile(`^tuner-[0-9a-f]{8}-\d{8}T\d{6}\.\d{3}Z\.db$`)

// Plan says when and where backups are made.
type Plan struct {
	Dir   string        // made if it is missing, for its owner alone; empty for no backups
	Keep  int           // backups to keep, with 0 for all
	Every time.Duration // between two backups of Run
}

// Check refuses a plan that cannot be, and names the fields.
func (p Plan) Check() error {
	switch {
	case p.Every < 0:
		return errors.New("the backups: Every must not be negative")
	case p.Every > 0 && p.Every < time.Second:
		return fmt.Errorf("the backups: Every %s: must be at least 1s", p.Every)
	case p.Keep < 0:
		return errors.New("the backups: Keep must not be negative")
	case p.Dir == "" && (p.Every > 0 || p.Keep > 0):
		return errors.New("the backups: Every and Keep need a directory: Dir")
	}
	return nil
}

// SizeOf returns a function for the size of a file, for Keeper.
func SizeOf(path string) func() int64 {
	return func() int64 {
		info, err := os.Stat(path)
		if err != nil {
			return 0
		}
		return info.Size()
	}
}

// Keeper keeps the backups of one store.
type Keeper struct {
	Plan
	// Write writes a consistent copy of the store.
	Write func(ctx context.Context, w io.Writer) error
	// Size is the approximate size of a copy, to check the free space first. It is nil if
	// the size is not known.
	Size   func() int64
	Logger *slog.Logger
	// Done is called after each try. It may be nil.
	Done func(Backup, error)
	Now  func() time.Time // nil for time.Now
}

// Backup is one that was written.
type Backup struct {
	Path   string
	Time   time.Time
	Bytes  int64
	Report *bolt.Report // of the check
}

// Run makes backups until ctx ends. The first comes when the newest in the directory is
// older than Every, so that a server that restarts often does not make one each time. A
// failure is logged, and the backup is tried again after at most a minute.
func (k *Keeper) Run(ctx context.Context) error {
	next := k.Newest().Add(k.Every)
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(next.Sub(k.now())):
		}
		begun := k.now()
		b, err := k.Once(ctx)
		if ctx.Err() != nil {
			return nil
		}
		next = begun.Add(k.Every)
		if err != nil {
			next = begun.Add(min(k.Every, time.Minute))
			k.Logger.Error("a backup failed; the store and the earlier backups are as they were", "dir", k.Dir, "error", err, "next", next)
		} else {
			k.Logger.Info("made a backup", "path", b.Path, "bytes", b.Bytes, "studies", b.Report.Studies, "events", b.Report.Events, "took", k.now().Sub(begun))
		}
	}
}

func (k *Keeper) now() time.Time {
	if k.Now != nil {
		return k.Now()
	}
	return time.Now()
}

// Newest is the time of the newest backup in the directory, of any store, that is not dated
// in the future. It is the zero time if there is none.
func (k *Keeper) Newest() (newest time.Time) {
	entries, _ := os.ReadDir(k.Dir)
	for _, e := range entries {
		if t, ok := timeOf(e.Name()); ok && t.After(newest) && !t.After(k.now()) {
			newest = t
		}
	}
	return newest
}

// Latest picks the latest of several backups of one store by their names. One that is dated
// in the future counts only if all are.
func Latest(paths []string, now time.Time) (string, error) {
	if len(paths) == 1 {
		return paths[0], nil // under any name
	}
	store := func(path string) string { return filepath.Base(path)[:len("tuner-")+idDigits] }
	for _, path := range paths {
		if _, ok := timeOf(path); !ok {
			return "", fmt.Errorf("%s is not named tuner-STORE-TIME.db, so it is unknown which of the %d files is the latest; name one of them", path, len(paths))
		}
		if store(path) != store(paths[0]) {
			return "", fmt.Errorf("%s and %s are backups of different stores, and one store can be restored at a time; name backups of one store", paths[0], path)
		}
	}
	return slices.MaxFunc(paths, func(a, b string) int {
		at, _ := timeOf(a)
		bt, _ := timeOf(b)
		if at.After(now) == bt.After(now) {
			return at.Compare(bt)
		}
		return bt.Compare(at) // the earlier one is not in the future
	}), nil
}

func timeOf(name string) (time.Time, bool) {
	if name = filepath.Base(name); !named.MatchString(name) {
		return time.Time{}, false
	}
	text := strings.TrimSuffix(name[len("tuner-")+idDigits+1:], ".db")
	t, err := time.Parse(timeLayout, text)
	return t, err == nil
}

// Once makes one backup, checks it, and then removes the oldest beyond Keep. If it
// fails, no backup was removed.
func (k *Keeper) Once(ctx context.Context) (b Backup, err error) {
	if k.Done != nil {
		defer func() { k.Done(b, err) }()
	}
	if err := os.MkdirAll(k.Dir, 0o700); err != nil {
		return Backup{}, err
	}
	unnamed := filepath.Join(k.Dir, ".tuner")
	atomicfile.Sweep(unnamed)
	if err := k.room(); err != nil {
		return Backup{}, err
	}
	f, err := atomicfile.New(unnamed, 0o600)
	if err != nil {
		return Backup{}, err
	}
	temp := f.Name()
	defer os.Remove(temp) // fails if all went well
	defer f.Close()
	b.Time = k.now().UTC()
	if b.Report, err = k.fill(ctx, f, temp); err != nil {
		return Backup{}, err
	}
	b.Bytes = b.Report.FileBytes
	prefix := "tuner-" + b.Report.Identity.Store[:idDigits] + "-"
	b.Path = filepath.Join(k.Dir, prefix+b.Time.Format(timeLayout)+".db")
	if _, err := os.Lstat(b.Path); err == nil {
		return Backup{}, fmt.Errorf("%s exists", b.Path)
	}
	if err := errors.Join(f.Close(), os.Rename(temp, b.Path)); err != nil {
		return Backup{}, err
	}
	if err := atomicfile.SyncDir(b.Path); err != nil {
		return Backup{}, err
	}
	return b, k.rotate(prefix, filepath.Base(b.Path))
}

// fill writes the copy, makes it durable, and checks it.
func (k *Keeper) fill(ctx context.Context, f *os.File, path string) (*bolt.Report, error) {
	w := bufio.NewWriterSize(f, 1<<20)
	if err := k.Write(ctx, w); err != nil {
		return nil, err
	}
	if err := errors.Join(w.Flush(), f.Sync()); err != nil {
		return nil, err
	}
	report, err := bolt.Check(ctx, path, nil)
	if err != nil {
		return nil, fmt.Errorf("checking the copy: %w", err)
	}
	if !report.OK() {
		return nil, fmt.Errorf("the copy is damaged (%d problems, the first: %s); run tuner check on the store itself", len(report.Problems)+report.More, report.Problems[0])
	}
	return report, nil
}

// rotate removes the oldest backups of the same store beyond Keep, and never the one just
// made. Those dated in the future are counted by themselves. Empty files are left alone and
// take no place.
func (k *Keeper) rotate(prefix, made string) error {
	if k.Keep <= 0 {
		return nil
	}
	entries, err := os.ReadDir(k.Dir) // sorted by name, so by age
	if err != nil {
		return err
	}
	var past, future []string // besides the one made
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || e.Name() == made || !strings.HasPrefix(e.Name(), prefix) || !info.Mode().IsRegular() || info.Size() == 0 {
			continue
		}
		switch t, ok := timeOf(e.Name()); {
		case ok && t.After(k.now()):
			future = append(future, e.Name())
			k.Logger.Warn("a backup is dated in the future, so it takes no place among those to keep; remove it if its date is wrong", "path", filepath.Join(k.Dir, e.Name()))
		case ok:
			past = append(past, e.Name())
		}
	}
	for _, name := range slices.Concat(past[:max(len(past)-k.Keep+1, 0)], future[:max(len(future)-k.Keep, 0)]) {
		if err := os.Remove(filepath.Join(k.Dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("removing an old backup: %w", err)
		}
	}
	return nil
}

// room refuses a copy that would fill the disk, because the store may be on it.
func (k *Keeper) room() error {
	if k.Size == nil {
		return nil
	}
	const spare = 64 << 20
	free, ok := atomicfile.Free(k.Dir)
	if need := k.Size() + spare; ok && free < need {
		return fmt.Errorf("the disk of %s has %d bytes free, a copy needs about %d", k.Dir, free, need)
	}
	return nil
}
