package torture

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestPromisesPage checks that the tests named in docs/promises.md and docs/why.md exist,
// that each "yes" of the latter has a test or a link, and that the former has a row for
// each planted bug.
func TestPromisesPage(t *testing.T) {
	text, err := os.ReadFile("../../docs/promises.md")
	if err != nil {
		t.Fatal(err)
	}
	page := string(text)
	there := make(map[string]bool)
	declared := regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)[A-Z]\w*)\(`)
	if err := filepath.WalkDir("../..", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		source, err := os.ReadFile(path)
		for _, m := range declared.FindAllSubmatch(source, -1) {
			there[string(m[1])] = true
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	why, err := os.ReadFile("../../docs/why.md")
	if err != nil {
		t.Fatal(err)
	}
	claims := regexp.MustCompile(`(?m)^\| ([^|]+) \| (yes[^|]*)`).FindAllStringSubmatch(string(why), -1)
	for _, m := range claims {
		if !strings.Contains(m[2], "`Test") && !strings.Contains(m[2], "](") {
			t.Errorf("docs/why.md: %q has neither a test nor a link: %s", m[1], m[2])
		}
	}
	named := regexp.MustCompile(`\b(?:Test|Fuzz)[A-Z]\w*`).FindAllString(page+string(why), -1)
	for _, name := range named {
		if !there[name] {
			t.Errorf("there is no %s", name)
		}
	}
	source, err := os.ReadFile("planted/bugs.txt")
	if err != nil {
		t.Fatal(err)
	}
	bugs := regexp.MustCompile(`(?m)^bug ([a-z-]+):`).FindAllSubmatch(source, -1)
	for _, m := range bugs {
		if !strings.Contains(page, "\n| "+string(m[1])+" |") {
			t.Errorf("the planted bug %s has no row", m[1])
		}
	}
	if len(named) < 30 || len(bugs) < 12 || len(claims) < 8 {
		t.Errorf("%d tests, %d bugs and %d claims were looked for: this was no test", len(named), len(bugs), len(claims))
	}
}
