package atomicfile_test

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/bkbtuner/bkb/internal/atomicfile"
)

func TestWrite(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	text := func(s string, err error) func(io.Writer) error {
		return func(w io.Writer) error { _, _ = io.WriteString(w, s); return err }
	}
	if err := atomicfile.Write(path, 0o600, text("old", nil)); err != nil {
		t.Fatal(err)
	}
	failed := errors.New("failed")
	if err := atomicfile.Write(path, 0o600, text("half", failed)); err != failed {
		t.Errorf("error is %v", err)
	}
	if b, _ := os.ReadFile(path); string(b) != "old" {
		t.Errorf("a write that failed left %q", b)
	}
	if err := atomicfile.Write(path, 0o640, text("new", nil)); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if b, _ := os.ReadFile(path); err != nil || string(b) != "new" || info.Mode().Perm() != 0o640 {
		t.Errorf("%q with the mode %v, %v", b, info.Mode(), err)
	}
	if all, _ := os.ReadDir(filepath.Dir(path)); len(all) != 1 {
		t.Errorf("%v are left", all)
	}
}
