package bolt

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bkbtuner/bkb/store"
	"github.com/bkbtuner/bkb/tuner/study"
	"go.etcd.io/bbolt"
)

// sample writes a sound store and returns its bytes, without the unused end.
func sample(t *testing.T) []byte {
	t.Helper()
	s := mustOpen(t, filepath.Join(t.TempDir(), "studies.db"), Options{})
	fill(t, s, "mnist", 40)
	var b strings.Builder
	if err := s.Backup(t.Context(), &b); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return []byte(b.String())
}

func writeFile(t *testing.T, path string, b []byte) {
	t.Helper()
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

// update changes a file without the store.
func update(t *testing.T, path string, f func(tx *bbolt.Tx) error) {
	t.Helper()
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{NoFreelistSync: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(db.Update(f), db.Close()); err != nil {
		t.Fatal(err)
	}
}

// identify replaces the identity.
func identify(t *testing.T, path string, id Identity) {
	t.Helper()
	update(t, path, func(tx *bbolt.Tx) error { return tx.Bucket(bucketMeta).Put(keyIdentity, id.row()) })
}

func TestRefusals(t *testing.T) {
	whole := sample(t)
	page := os.Getpagesize()
	for _, test := range []struct {
		name    string
		prepare func(t *testing.T, path string)
		reason  error
		words   []string
	}{
		{"missing", func(*testing.T, string) {}, ErrMissing, []string{"there is no store", "create"}},
		{"empty", func(t *testing.T, path string) { writeFile(t, path, nil) }, ErrEmpty, []string{"empty", "restore a backup"}},
		{"a few bytes", func(t *testing.T, path string) { writeFile(t, path, whole[:60]) }, ErrForeign, []string{"not a store"}},
		{"text", func(t *testing.T, path string) { writeFile(t, path, []byte(strings.Repeat("hello\n", 4000))) }, ErrForeign, []string{"not a store", "path"}},
		{"zeros", func(t *testing.T, path string) { writeFile(t, path, make([]byte, 1<<16)) }, ErrForeign, []string{"not a store"}},
		{"one page", func(t *testing.T, path string) { writeFile(t, path, whole[:page]) }, ErrTruncated, []string{"truncated", "restore"}},
		{"cut in the middle", func(t *testing.T, path string) { writeFile(t, path, whole[:len(whole)/2]) }, ErrTruncated, []string{"truncated", "bytes"}},
		{"cut by a byte", func(t *testing.T, path string) { writeFile(t, path, whole[:len(whole)-1]) }, ErrTruncated, []string{"truncated"}},
		{"no meta page", func(t *testing.T, path string) {
			b := append([]byte(nil), whole...)
			b[pageHeadBytes+20] ^= 1
			b[page+pageHeadBytes+20] ^= 1
			writeFile(t, path, b)
		}, ErrDamaged, []string{"damaged", "restore"}},
		{"another program's", func(t *testing.T, path string) {
			update(t, path, func(tx *bbolt.Tx) error {
				b, err := tx.CreateBucket([]byte("meta"))
				return errors.Join(err, b.Put([]byte("version"), []byte("3")))
			})
		}, ErrForeign, []string{"another program"}},
		{"another program's buckets", func(t *testing.T, path string) {
			update(t, path, func(tx *bbolt.Tx) error {
				b, err := tx.CreateBucket([]byte("meta"))
				_, nested := b.CreateBucket([]byte("identity"))
				logs, err2 := tx.CreateBucket([]byte("logs"))
				return errors.Join(err, nested, err2, logs.Put([]byte("version"), []byte("3")))
			})
		}, ErrForeign, []string{"another program"}},
		{"newer", func(t *testing.T, path string) {
			writeFile(t, path, whole)
			identify(t, path, Identity{Format: Format + 1, Store: strings.Repeat("ab", storeIDBytes), Writer: "tuner v9.1"})
		}, ErrNewerFormat, []string{"newer", "tuner v9.1", "format 2", "this program (github.com/bkbtuner/bkb", "newer one"}},
		{"damaged identity", func(t *testing.T, path string) {
			writeFile(t, path, whole)
			update(t, path, func(tx *bbolt.Tx) error {
				row := append([]byte(nil), tx.Bucket(bucketMeta).Get(keyIdentity)...)
				row[20] ^= 1
				return tx.Bucket(bucketMeta).Put(keyIdentity, row)
			})
		}, ErrDamaged, []string{"checksum"}},
		{"missing bucket", func(t *testing.T, path string) {
			writeFile(t, path, whole)
			update(t, path, func(tx *bbolt.Tx) error { return tx.DeleteBucket(bucketNames) })
		}, ErrDamaged, []string{"names"}},
		{"study without a name", func(t *testing.T, path string) {
			writeFile(t, path, whole)
			update(t, path, func(tx *bbolt.Tx) error { return tx.Bucket(bucketNames).Delete([]byte("mnist")) })
		}, ErrDamaged, []string{"0 names of 1 studies"}},
		{"study without a log", func(t *testing.T, path string) {
			writeFile(t, path, whole)
			update(t, path, func(tx *bbolt.Tx) error { return tx.Bucket(bucketLogs).DeleteBucket(idKey(1)) })
		}, ErrDamaged, []string{"0 logs of 1 studies"}},
		{"directory", func(t *testing.T, path string) {
			if err := os.Mkdir(path, 0o700); err != nil {
				t.Fatal(err)
			}
		}, ErrNotFile, []string{"directory"}},
		{"pipe", func(t *testing.T, path string) {
			if err := makePipe(path); err != nil {
				t.Skip(err)
			}
		}, ErrNotFile, []string{"pipe"}},
		{"no permission", func(t *testing.T, path string) {
			writeFile(t, path, whole)
			if err := os.Chmod(path, 0); err != nil {
				t.Fatal(err)
			}
			if f, err := os.Open(path); err == nil {
				_ = f.Close()
				t.Skip("this user may read everything")
			}
		}, fs.ErrPermission, []string{"permission"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "studies.db")
			test.prepare(t, path)
			for _, readOnly := range []bool{false, true} {
				s, err := Open(path, Options{MustExist: true, ReadOnly: readOnly})
				if err == nil {
					_ = s.Close()
				}
				e, ok := errors.AsType[*FileError](err)
				if !ok || !errors.Is(err, test.reason) || e.Path != path || e.Remedy == "" {
					t.Fatalf("error is %v, want %v", err, test.reason)
				}
				if strings.Count(err.Error(), path) != 1 {
					t.Errorf("%q repeats itself", err)
				}
				for _, word := range test.words {
					if !strings.Contains(err.Error(), word) {
						t.Errorf("%q does not say %q", err, word)
					}
				}
			}
			if report, err := Check(t.Context(), path, nil); err == nil && report.OK() {
				t.Error("check found nothing wrong")
			}
		})
	}
}

func TestCreation(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "studies.db")
	if _, err := Open(filepath.Join(dir, "nowhere", "studies.db"), Options{}); !errors.Is(err, ErrMissing) || !strings.Contains(err.Error(), "directory") {
		t.Errorf("in no directory: %v", err)
	}
	s := mustOpen(t, path, Options{})
	id := s.identity
	if id.Format != Format || id.Writer != programVersion() || len(id.Store) != 32 {
		t.Errorf("the identity is %+v", id)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode() != 0o600 {
		t.Errorf("the file's mode is %v, %v", info.Mode(), err)
	}
	if err := create(path, Options{}.withDefaults()); !errors.Is(err, fs.ErrExist) {
		t.Errorf("creating it again: %v", err)
	}
	s = mustOpen(t, path, Options{})
	if s.identity != id {
		t.Errorf("the identity is %+v, was %+v", s.identity, id)
	}
	if names, err := os.ReadDir(dir); err != nil || len(names) != 1 {
		t.Errorf("the directory has %v, %v; want the store only", names, err)
	}
	if err := linkNew(path, filepath.Join(dir, "other")); err != nil {
		t.Error(err)
	}
	if err := linkNew(filepath.Join(dir, "other"), filepath.Join(dir, "other")); !errors.Is(err, fs.ErrExist) {
		t.Errorf("over an existing file: %v", err)
	}
	dangling := filepath.Join(dir, "link")
	if err := os.Symlink(filepath.Join(dir, "nothing"), dangling); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(dangling, Options{}); !errors.Is(err, ErrMissing) || !strings.Contains(err.Error(), "link") {
		t.Errorf("a dangling link: %v", err)
	}
}

func TestReadOnly(t *testing.T) {
	path := filepath.Join(t.TempDir(), "studies.db")
	s := mustOpen(t, path, Options{})
	info := fill(t, s, "mnist", 3)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	a, b := mustOpen(t, path, Options{ReadOnly: true}), mustOpen(t, path, Options{ReadOnly: true})
	wantPrefix(t, a, "mnist", info.Head)
	wantPrefix(t, b, "mnist", info.Head)
	_, createErr := a.Create(t.Context(), "other", []study.Event{opened()})
	for call, err := range map[string]error{
		"Create": createErr,
		"Commit": a.Commit(t.Context(), info.ID, info.Head, trials(3, 1), nil),
		"Delete": a.Delete(t.Context(), info.ID),
		"Save":   a.SaveSummaries(t.Context(), []store.Summary{{Study: info.ID, Position: 1}}),
	} {
		if !errors.Is(err, ErrReadOnly) {
			t.Errorf("%s: %v", call, err)
		}
	}
	if err := errors.Join(a.Close(), b.Close()); err != nil {
		t.Fatal(err)
	}
	if after, err := os.ReadFile(path); err != nil || string(after) != string(before) {
		t.Errorf("the file has changed (%v)", err)
	}
}
