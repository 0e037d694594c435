package main

import (
	"bytes"
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestGuides runs the pages of docs that have blocks of kind console. In such a block a
// line "$ …" is a command for sh, lines "> …" continue it, and what follows is its
// standard output. A line "…" stands for any lines. Numbers may differ, because
// processors round differently. A block of another kind with a name, such as
// ```yaml space.yaml, is a file that the commands use. Port 7070 stands for a free
// port. UPDATE_DOCS=1 rewrites output that differs.
func TestGuides(t *testing.T) {
	if testing.Short() {
		t.Skip("one command after another: nothing for the race detector; go test ./cmd/tuner runs it")
	}
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

// runGuide runs the commands of a page in a folder of its own and returns the page with
// the output that they have now.
func runGuide(t *testing.T, text string) string {
	dir, port := t.TempDir(), freePort(t)
	var out []string
	lines := strings.Split(text, "\n")
	for i := 0; i < len(lines); i++ {
		out = append(out, lines[i])
		kind, ok := strings.CutPrefix(lines[i], "```")
		if !ok || kind == "" {
			continue
		}
		end := i + 1
		for lines[end] != "```" {
			end++
		}
		block := lines[i+1 : end]
		if _, name, ok := strings.Cut(kind, " "); ok {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(strings.Join(block, "\n")+"\n"), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if kind == "console" {
			block = runBlock(t, dir, port, block)
		}
		out = append(out, block...)
		out = append(out, "```")
		i = end
	}
	return strings.Join(out, "\n")
}

// freePort returns a port of this machine that nothing listens on.
func freePort(t *testing.T) string {
	l, err := net.Listen("tcp", "localhost:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
}

func runBlock(t *testing.T, dir, port string, block []string) []string {
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
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
		cmd := exec.CommandContext(ctx, "sh", "-c", strings.ReplaceAll(command, ":7070", ":"+port))
		cmd.Dir, cmd.WaitDelay = dir, time.Second
		cmd.Env = append(os.Environ(), "TUNER_DB=", "TUNER_SERVER=", "TUNER_STUDY=", "LC_ALL=C.UTF-8")
		var stdout, stderr bytes.Buffer
		cmd.Stdout, cmd.Stderr = &stdout, &stderr
		if err := cmd.Run(); err != nil {
			t.Errorf("$ %s: %v\n%s", command, err, stderr.Bytes())
		}
		cancel()
		var got []string
		if text := strings.TrimRight(stdout.String(), "\n"); text != "" {
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

var numeral = regexp.MustCompile(`[-+]?\d+(\.\d+)?([eE][-+]?\d+)?`)

// alike compares lines except their numbers and spaces.
func alike(got, want []string) bool {
	plain := func(line string) string {
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
	return len(got) > 0 && plain(got[0]) == plain(want[0]) && alike(got[1:], want[1:])
}
