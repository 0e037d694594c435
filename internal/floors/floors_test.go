package floors

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
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

// TestModule checks every package of the module, and its tests, against
// docs/architecture.md. It reads the files itself, independent of their build tags, so that
// the test cache knows the inputs of the result.
func TestModule(t *testing.T) {
	packages := readPackages(t, "../..")
	if len(packages) < 5 {
		t.Fatalf("found only %d packages", len(packages))
	}
	for _, fault := range readHouse(t).Check(packages) {
		t.Error(fault)
	}
}

func readPackages(t *testing.T, root string) []Package {
	t.Helper()
	found := make(map[string]*Package)
	documented := make(map[string]bool)
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if name := d.Name(); d.IsDir() && (name == "testdata" || len(name) > 2 && name[0] == '.') {
			return fs.SkipDir
		}
		if d.IsDir() && path != root {
			if _, err := os.Stat(filepath.Join(path, "go.mod")); err == nil {
				return fs.SkipDir // another module
			}
		}
		if filepath.Ext(path) != ".go" {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly|parser.ParseComments)
		if err != nil {
			return err
		}
		dir, err := filepath.Rel(root, filepath.Dir(path))
		if err != nil {
			return err
		}
		dir = filepath.ToSlash(dir)
		if found[dir] == nil {
			found[dir] = &Package{Path: dir}
		}
		documented[dir] = documented[dir] || file.Doc != nil
		for _, imp := range file.Imports {
			name, err := strconv.Unquote(imp.Path.Value)
			if err != nil {
				return err
			}
			if strings.HasSuffix(path, "_test.go") {
				found[dir].TestImports = append(found[dir].TestImports, name)
			} else {
				found[dir].Imports = append(found[dir].Imports, name)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	var packages []Package
	for dir, p := range found {
		if !documented[dir] {
			t.Errorf("%s: the package has no doc comment", dir)
		}
		packages = append(packages, *p)
	}
	return packages
}

// TestLearnersReadNoFiles keeps the file formats out of programs that fit a learner to
// their own numbers. Tests may read files.
func TestLearnersReadNoFiles(t *testing.T) {
	for _, p := range readPackages(t, "../..") {
		if within(p.Path, "learners") && !within(p.Path, "learners/dataset") && slices.Contains(p.Imports, Module+"/learners/dataset") {
			t.Errorf("%s imports learners/dataset, and with it every file format", p.Path)
		}
	}
}

// TestCheck gives the real table imports that it must refuse, and similar ones that it must
// not.
func TestCheck(t *testing.T) {
	const std, other = "net/http", "github.com/google/go-cmp/cmp"
	ours := func(path string) string { return Module + "/" + path }
	for _, c := range []struct {
		from, imports string
		inTest        bool
		want          string // part of the fault, empty for none
	}{
		{"gp/kernel", std, false, ""},
		{"gp/kernel", other, true, ""},
		{"gp/kernel", other, false, "allowed only in tests"},
		{"gp/kernel", "example.org/handy", false, "no row of the table of modules"},
		{"tuner/study", "strings", false, ""},
		{"tuner/study", "math/rand/v2", false, "must not use it"},
		{"tuner/study", "math/rand/v2", true, ""},
		{"tuner/study", "os/exec", false, "must not use it"},
		{"gp/kernel", ours("internal/dense"), false, ""},
		{"gp", ours("gp/kernel"), false, ""},
		{"gp/kernel", ours("gp"), false, "lower floors only"},
		{"gp", ours("sketch"), false, ""},
		{"sketch", ours("gp"), false, "lower floors only"},
		{"bandit", ours("learners"), false, "lower floors only"},
		{"bandit", ours("tuner/space"), false, "must not depend"},
		{"learners/falkon", ours("learners/data"), false, ""},
		{"learners/data", ours("learners/dataset"), false, "lower floors only"},
		{"learners/dataset", ours("learners"), false, "lower floors only"},
		{"learners/falkon", ours("store"), true, "must not depend"},
		{"tuner/study", ours("tuner/space"), false, ""},
		{"tuner/space", ours("tuner/study"), false, "lower floors only"},
		{"tuner/study", ours("gp/kernel"), false, "must not depend"},
		{"tuner", ours("gp"), false, "must not depend"},
		{"tuner", ours("tuner/propose"), false, "lower floors only"},
		{"tuner/engine", ours("tuner/propose"), false, ""},
		{"tuner/web", ours("tuner/engine"), false, "must not depend"},
		{"tuner/web", ours("tuner/engine"), true, ""},
		{"tuner/engine", ours("store/bolt"), false, ""},
		{"tuner", ours("tuner/server"), false, "lower floors only"},
		{"tuner", ours("proto/tuner/v1"), false, "only packages named in the table may import the wire"},
		{"tuner/server", ours("proto/tuner/v1"), false, ""},
		{"tuner/server", ours("tuner/client"), false, "lower floors only"},
		{"tuner/server", ours("tuner/client/clienttest"), true, ""},
		{"tuner/propose", ours("bandit"), false, ""},
		{"tuner/propose", ours("store"), false, "must not depend"},
		{"store/bolt", ours("store"), false, ""},
		{"store/bolt", "go.etcd.io/bbolt", false, ""},
		{"store", "go.etcd.io/bbolt", false, "allowed only in store/bolt"},
		{"store/memory", ours("store/storetest"), true, ""},
		{"store/storetest", "pgregory.net/rapid", false, ""},
		{"store", "pgregory.net/rapid", true, ""},
		{"store", "pgregory.net/rapid", false, "allowed only in tests"},
		{"cmd/tuner", ours("proto/tuner/v1"), false, ""},
		{"cmd/tuner", "google.golang.org/grpc/credentials", false, ""},
		{"tuner/study", "google.golang.org/grpc/codes", false, "allowed only"},
		{"tuner/runner", ours("figure"), false, ""},
		{"figure", ours("learners/data"), false, "must not depend"},
		{"examples/library/falkon", ours("learners/falkon"), false, ""},
		{"examples/library/falkon", ours("internal/stream"), false, "must not depend"},
		{"internal/dense", ours("gp"), false, "must not depend"},
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

// TestThrough adds the import of a package of mathematics low down, and asks for the fault
// of each package above that must do without.
func TestThrough(t *testing.T) {
	packages := readPackages(t, "../..")
	for i := range packages {
		if packages[i].Path == "tuner/surrogate" {
			packages[i].Imports = append(packages[i].Imports, Module+"/bandit")
		}
	}
	faults := strings.Join(readHouse(t).Check(packages), "\n")
	for _, want := range []string{
		"tuner/client → tuner/surrogate → bandit: tuner/client must not depend on bandit",
		"tuner/runner → tuner → tuner/surrogate → bandit → gp: tuner/runner must not depend on gp",
	} {
		if !strings.Contains(faults, want) {
			t.Errorf("no fault %q in\n%s", want, faults)
		}
	}
}

// TestClientLinksLittle counts the packages of this module that a client links.
func TestClientLinksLittle(t *testing.T) {
	imports := make(map[string][]string)
	for _, p := range readPackages(t, "../..") {
		imports[p.Path] = p.Imports
	}
	linked := []string{"tuner/client"}
	for i := 0; i < len(linked); i++ {
		for _, imp := range imports[linked[i]] {
			if to, ours := strings.CutPrefix(imp, Module+"/"); ours && !slices.Contains(linked, to) {
				linked = append(linked, to)
			}
		}
	}
	if len(linked) > 12 {
		t.Errorf("tuner/client links %d packages, and 12 are the most: %v", len(linked), linked)
	}
}

// clock matches a use of the clock.
var clock = regexp.MustCompile(`\btime\.(Now|Since|Until|After|AfterFunc|Sleep|NewTimer|NewTicker|Tick)\(`)

// TestNoClock reads the code of the packages that take time as an argument.
func TestNoClock(t *testing.T) {
	for _, dir := range []string{"tuner/study", "tuner/space", "tuner/propose", "tuner/prune", "bandit", "gp", "sketch"} {
		files, err := filepath.Glob("../../" + dir + "/*.go")
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if found := clock.Find(text); found != nil {
				t.Errorf("%s: %s…): time is an argument here", file, found)
			}
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

// TestPlaces finds each place of the page, such as "`due` in `tuner/engine/actor/clock.go`".
func TestPlaces(t *testing.T) {
	page, err := os.ReadFile("../../docs/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	places := regexp.MustCompile("`(\\w+)` in `([\\w/]+\\.go)`").FindAllSubmatch(page, -1)
	if len(places) < 8 {
		t.Errorf("the page has %d places, want 8 at least", len(places))
	}
	for _, p := range places {
		text, err := os.ReadFile("../../" + string(p[2]))
		if err != nil {
			t.Error(err)
		} else if name := string(p[1]); !regexp.MustCompile(`(?m)^((func|type|var) |func \(.*\) )` + name + `\b|^func \(\w+ ` + name + `\) `).Match(text) {
			t.Errorf("%s has no %s", p[2], p[1])
		}
	}
}
