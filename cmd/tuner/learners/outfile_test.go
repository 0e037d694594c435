package learners

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/bkbtuner/bkb/cmd/tuner/cli"
	"github.com/bkbtuner/bkb/learners"
)

func TestModelsReplaceModelsOnly(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	data := write("data.csv", "x,y\n1,2\n")
	hard := filepath.Join(dir, "hard.csv")
	if err := os.Link(data, hard); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		path   string
		status int
	}{
		{filepath.Join(dir, "new.model"), cli.ExitOK},
		{write("old.model", "BKBMODEL and so on"), cli.ExitOK},
		{write("empty.model", ""), cli.ExitOK},
		{write("notes.txt", "mine"), cli.ExitUsage},
		{write("short", "BKB"), cli.ExitUsage},
		{data, cli.ExitUsage},
		{hard, cli.ExitUsage},
		{dir, cli.ExitUsage},
		{filepath.Join(dir, "no", "new.model"), cli.ExitNotFound},
	} {
		before, _ := os.ReadDir(dir)
		if got := cli.StatusOf(checkOut(c.path, "model", learners.Magic, []string{data, "-", ""})); got != c.status {
			t.Errorf("%s: status %d, want %d", c.path, got, c.status)
		}
		if after, _ := os.ReadDir(dir); len(after) != len(before) {
			t.Errorf("%s: %d files became %d", c.path, len(before), len(after))
		}
	}
}
