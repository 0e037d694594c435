package floors

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
)

func readHouse(t *testing.T) House {
	t.Helper()
	page, err := os.Open("../../docs/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	defer page.Close()
	h, err := Parse(page)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// TestModule holds every package of the module, and its tests, against
// docs/architecture.md.
func TestModule(t *testing.T) {
	cmd := exec.Command("go", "list", "-json=ImportPath,Doc,Imports,TestImports,XTestImports", Module+"/...")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	var packages []Package
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p struct {
			ImportPath, Doc                    string
			Imports, TestImports, XTestImports []string
		}
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		if p.Doc == "" {
			t.Errorf("%s: the package has no doc comment", p.ImportPath)
		}
		packages = append(packages, Package{
			Path:        strings.TrimPrefix(p.ImportPath, Module+"/"),
			Imports:     p.Imports,
			TestImports: append(p.TestImports, p.XTestImports...),
		})
	}
	if len(packages) < 5 {
		t.Fatalf("go list found only %d packages", len(packages))
	}
	for _, fault := range readHouse(t).Check(packages) {
		t.Error(fault)
	}
}

// TestCheck feeds the real table imports that it must refuse, and their
// nearest neighbours that it must not.
func TestCheck(t *testing.T) {
	const std, other = "net/http", "github.com/google/go-cmp/cmp"
	ours := func(path string) string { return Module + "/" + path }
	for _, c := range []struct {
		from, imports string
		inTest        bool
		want          string // part of the fault; empty for none
	}{
		{"gp/kernel", std, false, ""},
		{"gp/kernel", other, false, ""},
		{"gp/kernel", ours("internal/dense"), false, ""},
		{"gp", ours("gp/kernel"), false, ""},
		{"gp/kernel", ours("gp"), false, "lower floors only"},
		{"gp", ours("sketch"), false, ""},
		{"sketch", ours("gp"), false, "lower floors only"},
		{"bandit", ours("learners"), false, "lower floors only"},
		{"bandit", ours("tuner/space"), false, "must not know"},
		{"learners/falkon", ours("learners/dataset"), false, ""},
		{"learners/falkon", ours("store"), true, "must not know"},
		{"tuner/study", ours("tuner/space"), false, ""},
		{"tuner/space", ours("tuner/study"), false, "lower floors only"},
		{"tuner/study", ours("gp/kernel"), false, "must not know"},
		{"tuner", ours("gp"), false, "must not know"},
		{"tuner", ours("tuner/propose"), false, ""},
		{"tuner", ours("store/bolt"), false, ""},
		{"tuner", ours("tuner/server"), false, "lower floors only"},
		{"tuner", ours("proto/tuner/v1"), false, "the wire is known only"},
		{"tuner/server", ours("proto/tuner/v1"), false, ""},
		{"tuner/server", ours("tuner/client"), false, "lower floors only"},
		{"tuner/server", ours("tuner/client/clienttest"), true, ""},
		{"tuner/propose", ours("bandit"), false, ""},
		{"tuner/propose", ours("store"), false, "must not know"},
		{"store/bolt", ours("store"), false, ""},
		{"store/bolt", "go.etcd.io/bbolt", false, ""},
		{"store", "go.etcd.io/bbolt", false, "at home only in store/bolt"},
		{"store/memory", ours("store/storetest"), true, ""},
		{"store/storetest", "pgregory.net/rapid", false, ""},
		{"store", "pgregory.net/rapid", true, ""},
		{"store", "pgregory.net/rapid", false, "at home only in tests"},
		{"cmd/tuner", ours("proto/tuner/v1"), false, ""},
		{"cmd/tuner", "google.golang.org/grpc/credentials", false, ""},
		{"tuner/study", "google.golang.org/grpc/codes", false, "at home only"},
		{"internal/bench", ours("tuner"), false, ""},
		{"internal/dense", ours("gp"), false, "must not know"},
		{"attic", std, false, "no row"},
	} {
		p := Package{Path: c.from, Imports: []string{c.imports}}
		if c.inTest {
			p = Package{Path: c.from, TestImports: []string{c.imports}}
		}
		faults := strings.Join(readHouse(t).Check([]Package{p}), "\n")
		switch {
		case c.want == "" && faults != "":
			t.Errorf("%s → %s (test: %t) refused: %s", c.from, c.imports, c.inTest, faults)
		case c.want != "" && !strings.Contains(faults, c.want):
			t.Errorf("%s → %s (test: %t): want a fault with %q, got %q", c.from, c.imports, c.inTest, c.want, faults)
		}
	}
}

func TestParseNeedsBothTables(t *testing.T) {
	for _, page := range []string{"", "| 1 | `gp/kernel` | x | | |\n", "| `a.b/c` | `gp` |\n"} {
		if _, err := Parse(strings.NewReader(page)); err == nil {
			t.Errorf("Parse(%q) found no fault", page)
		}
	}
}
