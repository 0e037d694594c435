// Package examples_test builds and runs the programs in folder library as users do,
// from a module of their own.
package examples_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	// The programs' imports, so that a change of them runs the test again.
	_ "github.com/bkbtuner/bkb/bandit"
	_ "github.com/bkbtuner/bkb/learners/falkon"
	_ "github.com/bkbtuner/bkb/store/memory"
	_ "github.com/bkbtuner/bkb/tuner"
	_ "github.com/bkbtuner/bkb/tuner/serve"
)

// programs are those in folder library. They stay short, because the public packages
// have all that they need.
var programs = []struct {
	name       string
	statements int // limit for the file, or 0 if they are not counted
	lines      int // limit for the file, or 0 if they are not counted
	prints     string
	without    string // a module that the program does not link
}{
	{name: "falkon", statements: 15, prints: `^RMSE below 0\.001: true\n$`, without: "parquet"},
	{name: "bandit", statements: 12, prints: `^x = \(0\.3, 0\.7\)\n$`, without: "parquet"},
	{name: "serve", lines: 45, prints: `^true <nil>\n$`, without: "parquet"},
	{name: "service", lines: 35, prints: `^lr=0\.0(09|10)\d*\n$`, without: "parquet"},
}

func TestLibrary(t *testing.T) {
	if testing.Short() {
		t.Skip("builds programs in a module of their own")
	}
	dir := outside(t)
	for _, p := range programs {
		t.Run(p.name, func(t *testing.T) {
			source := filepath.Join("library", p.name, "main.go")
			text, err := os.ReadFile(source)
			if err != nil {
				t.Fatal(err)
			}
			if n := statements(t, source); p.statements > 0 && n > p.statements {
				t.Errorf("%d statements, want %d at most", n, p.statements)
			}
			if n := strings.Count(string(text), "\n"); p.lines > 0 && n > p.lines {
				t.Errorf("%d lines, want %d at most", n, p.lines)
			}
			if err := os.Mkdir(filepath.Join(dir, p.name), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, p.name, "main.go"), text, 0o644); err != nil {
				t.Fatal(err)
			}
			binary := filepath.Join(dir, p.name+".exe")
			run(t, dir, "go", "build", "-ldflags=-s -w", "-o", binary, "./"+p.name)
			if got := run(t, dir, binary); !regexp.MustCompile(p.prints).MatchString(got) {
				t.Errorf("it printed %q, want %s", got, p.prints)
			}
			for _, list := range []string{run(t, dir, "go", "list", "-deps", "./"+p.name), run(t, dir, "go", "version", "-m", binary)} {
				if strings.Contains(list, p.without) {
					t.Errorf("it links %s:\n%s", p.without, list)
				}
			}
		})
	}
}

// outside makes a module that requires this one, from the folder it is in. It adds
// no version of other modules and needs no network.
func outside(t *testing.T) string {
	t.Helper()
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	sums, err := os.ReadFile(filepath.Join(root, "go.sum"))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	module := "module example.org/outside\n\ngo 1.26.0\n\nrequire github.com/bkbtuner/bkb v0.0.0\n\nreplace github.com/bkbtuner/bkb => " + root + "\n"
	for name, text := range map[string]string{"go.mod": module, "go.sum": string(sums)} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// run runs a command in a folder, without network, and returns what it prints.
func run(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOFLAGS=-mod=mod", "GOPROXY=off", "GOWORK=off")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}

// statements counts the statements of all functions in a file, blocks aside.
func statements(t *testing.T, file string) int {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	ast.Inspect(parsed, func(node ast.Node) bool {
		if _, block := node.(*ast.BlockStmt); block {
			return true
		}
		if _, ok := node.(ast.Stmt); ok {
			n++
		}
		return true
	})
	return n
}
