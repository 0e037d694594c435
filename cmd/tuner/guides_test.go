package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/bkbtuner/bkb/internal/freeport"
	"golang.org/x/sys/cpu"
)

// TestGuides runs the pages of docs that have blocks of kind console. In such a block a
// line "$ …" is a command for sh, lines "> …" continue it, and what follows is its
// standard output. A line "…" stands for any lines, and … at the end of a line for the
// rest of it. A block "console needs MODULE" is left out where Python has no such module.
// Numbers may differ on processors other than those on which the pages were made, because
// they round differently. A block of another kind with a name, such as ```yaml space.yaml,
// is a file that the commands use, or one that they have made. Port 7070 stands for a free
// port. UPDATE_DOCS=1 rewrites output that differs.
func TestGuides(t *testing.T) {
	if testing.Short() {
		t.Skip("one command after another: nothing for the race detector; go test ./cmd/tuner runs it")
	}
	t.Parallel() // with the tests that wait
	pages, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Contains(text, []byte("\n```console\n")) {
			continue
		}
		t.Run(filepath.Base(page), func(t *testing.T) {
			t.Parallel()
			for _, program := range []string{"python3", "openssl", "curl"} {
				if _, err := exec.LookPath(program); err != nil && bytes.Contains(text, []byte("$ "+program+" ")) {
					t.Skip("no " + program)
				}
			}
			now := runGuide(t, string(text))
			if now != string(text) && os.Getenv("UPDATE_DOCS") != "" {
				if err := os.WriteFile(page, []byte(now), 0o644); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// The path to the new user's first command names this program.
func TestInstallCommand(t *testing.T) {
	page, err := os.ReadFile("../../docs/quickstart.md")
	if err != nil {
		t.Fatal(err)
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		t.Fatal("no build information")
	}
	// The path of a test's main package ends in .test.
	if want := "\n    go install " + strings.TrimSuffix(info.Path, ".test") + "@latest\n"; !strings.Contains(string(page), want) {
		t.Errorf("docs/quickstart.md has no line %q", want)
	}
	for _, name := range []string{"quickstart", "migrate", "parallel"} {
		page, err := os.ReadFile("../../docs/" + name + ".md")
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(outsideBlocks(string(page))) {
			if strings.HasPrefix(line, "    ") && !strings.HasPrefix(line, "    go install ") {
				t.Errorf("docs/%s.md has a command that no test runs: %s", name, line)
			}
		}
	}
}

// outsideBlocks is a page without its blocks between lines ```.
func outsideBlocks(page string) string {
	var b strings.Builder
	for i, part := range strings.Split("\n"+page, "\n```") {
		if i%2 == 0 {
			b.WriteString(part)
		}
	}
	return b.String()
}

// guide runs the commands of a page in a folder of its own.
type guide struct {
	dir, port string
	env       []string // of the commands, which may change it
}

// runGuide runs the commands of a page and returns the page with the output that they
// have now.
func runGuide(t *testing.T, text string) string {
	g := &guide{dir: t.TempDir(), port: freePort(t), env: append(os.Environ(), "TUNER_DB=", "TUNER_SERVER=", "TUNER_STUDY=", "LC_ALL=C.UTF-8", "COLUMNS=80", "PYTHONDONTWRITEBYTECODE=1")}
	if onGuidesPath() {
		g.env = append(g.env, "BKB_SIMD="+guidesPath)
	}
	if name := os.Getenv("TUNER_PYTHON"); name != "" { // its folder has the modules' commands too
		g.env = append(g.env, "PATH="+filepath.Dir(name)+string(os.PathListSeparator)+os.Getenv("PATH"))
	}
	export, err := os.ReadFile("../../examples/python/optuna_export.py")
	if err != nil {
		t.Fatal(err)
	}
	g.write(t, "optuna_export.py", export)
	var out []string
	lines := strings.Split(text, "\n")
	for i := 0; i < len(lines); i++ {
		out = append(out, lines[i])
		info, ok := strings.CutPrefix(lines[i], "```")
		if !ok || info == "" {
			continue
		}
		end := i + 1
		for lines[end] != "```" {
			end++
		}
		block := lines[i+1 : end]
		kind, name, named := strings.Cut(info, " ")
		module, needs := strings.CutPrefix(name, "needs ")
		switch {
		case kind == "console" && needs:
			t.Run(module, func(t *testing.T) {
				if _, err := g.output("python3 -c 'import " + module + "'"); err != nil {
					t.Skipf("Python has no module %s; TUNER_PYTHON can name another Python", module)
				}
				block = g.run(t, block)
			})
		case kind == "console":
			block = g.run(t, block)
		case named:
			g.file(t, name, []byte(strings.Join(block, "\n")+"\n"))
		}
		out = append(out, block...)
		out = append(out, "```")
		i = end
	}
	return strings.Join(out, "\n")
}

// file writes a file, or compares it with the one that the commands have made.
func (g *guide) file(t *testing.T, name string, text []byte) {
	made, err := os.ReadFile(filepath.Join(g.dir, name))
	if err == nil && filepath.Ext(name) == ".json" {
		var have, want any
		if err := errors.Join(json.Unmarshal(made, &have), json.Unmarshal(text, &want)); err != nil {
			t.Errorf("%s: %v", name, err)
		} else if !reflect.DeepEqual(have, want) {
			t.Errorf("the commands make another %s:\n%s", name, made)
		}
	} else if err == nil && !bytes.Equal(made, text) {
		t.Errorf("the commands make another %s:\n%s", name, made)
	}
	g.write(t, name, text)
}

func (g *guide) write(t *testing.T, name string, text []byte) {
	if err := os.WriteFile(filepath.Join(g.dir, name), text, 0o644); err != nil {
		t.Fatal(err)
	}
}

// freePort returns a port of this machine that nothing listens on.
func freePort(t *testing.T) string {
	t.Helper()
	port, err := freeport.Get()
	if err != nil {
		t.Fatal(err)
	}
	return strconv.Itoa(port)
}

// run runs the commands of a block and returns it with their output.
func (g *guide) run(t *testing.T, block []string) []string {
	var out []string
	for i := 0; i < len(block); {
		command, ok := strings.CutPrefix(block[i], "$ ")
		if !ok {
			t.Fatalf("%q is the output of no command", block[i])
		}
		out = append(out, block[i])
		for i++; i < len(block) && strings.HasPrefix(block[i], "> "); i++ {
			command += "\n" + block[i][2:]
			out = append(out, block[i])
		}
		first := i
		for i < len(block) && !strings.HasPrefix(block[i], "$ ") {
			i++
		}
		want := block[first:i]
		if variable, ok := strings.CutPrefix(command, "export "); ok { // for the commands after it
			g.env = append(g.env, g.local(variable))
			continue
		}
		text, err := g.output(command)
		if err != nil {
			t.Errorf("$ %s: %v", command, err)
		}
		var got []string
		if text = strings.TrimRight(text, "\n"); text != "" {
			got = strings.Split(text, "\n")
		}
		if !alike(got, want) {
			t.Errorf("$ %s\nprints\n%s\nand the page says\n%s", command, strings.Join(got, "\n"), strings.Join(want, "\n"))
			want = got
		}
		out = append(out, want...)
	}
	return out
}

// local is a text with the port that is free.
func (g *guide) local(text string) string { return strings.ReplaceAll(text, ":7070", ":"+g.port) }

// output runs a command and returns what it prints.
func (g *guide) output(command string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "-c", g.local(command))
	cmd.Dir, cmd.Env, cmd.WaitDelay = g.dir, g.env, time.Minute
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%w\n%s", err, stderr.Bytes())
	}
	return stdout.String(), nil
}

var numeral = regexp.MustCompile(`[-+]?\d+(\.\d+)?([eE][-+]?\d+)?`)

// guidesPath is the numeric path on which the pages were made.
const guidesPath = "avx2"

// onGuidesPath reports whether this machine has that path. Commands of the pages then use
// it, also where a wider one is the default.
func onGuidesPath() bool { return cpu.X86.HasAVX2 && cpu.X86.HasFMA }

// alike compares lines, except their numbers and spaces on another numeric path.
func alike(got, want []string) bool {
	plain := func(line string) string {
		if onGuidesPath() {
			return line
		}
		return strings.Join(strings.Fields(numeral.ReplaceAllString(line, "0")), " ")
	}
	if len(want) == 0 {
		return len(got) == 0
	}
	if want[0] == "…" {
		for n := 0; n <= len(got); n++ {
			if alike(got[n:], want[1:]) {
				return true
			}
		}
		return false
	}
	if len(got) == 0 {
		return false
	}
	line, cut := strings.CutSuffix(want[0], "…")
	return (plain(got[0]) == plain(want[0]) || cut && strings.HasPrefix(plain(got[0]), plain(line))) && alike(got[1:], want[1:])
}
