package datatest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// skipping is a test that would be skipped.
type skipping struct {
	testing.TB
	text string
}

func (s *skipping) Skip(args ...any) { s.text = fmt.Sprint(args...) }

func TestFind(t *testing.T) {
	if _, err := os.Stat(filepath.Join(project(), "docs", "architecture.md")); err != nil {
		t.Errorf("the project's folder: %v", err)
	}
	folder := t.TempDir()
	t.Setenv("BKB_DATA", folder)
	if got := Find(); got != "" {
		t.Errorf("%s has no manifest", got)
	}
	asked := &skipping{TB: t}
	if Folder(asked); !strings.Contains(asked.text, "BKB_DATA") {
		t.Errorf("a test without data went on, or does not say what to set: %q", asked.text)
	}
	if err := os.WriteFile(filepath.Join(folder, "MANIFEST.md"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if got := Folder(t); got != folder {
		t.Errorf("%s, want %s", got, folder)
	}
}
