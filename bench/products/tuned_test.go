//go:build linux

package main

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The splits of small sets come before sets of many rows.
func TestTunedOrder(t *testing.T) {
	u := tunedFixture(t)
	var text bytes.Buffer
	z := gzip.NewWriter(&text)
	fmt.Fprint(z, strings.Repeat("1,2\n", 2001))
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(u.set("long"), text.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	u.sets = []string{"long", "line", "none"}
	if got := u.bySize(); !slices.Equal(got[0], []string{"line", "none"}) || !slices.Equal(got[1], []string{"long"}) {
		t.Errorf("the order is %v", got)
	}
}

// tunedFixture has a set of 50 rows, and programs in place of tuner and Python that count
// their calls.
func tunedFixture(t *testing.T) *tuned {
	t.Helper()
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "uci"), 0o755); err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	z := gzip.NewWriter(&text)
	for i := range 50 {
		fmt.Fprintf(z, "%d,%d\n", i, 2*i)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "uci", "line.data.csv.gz"), text.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	program := func(name, script string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte("#!/bin/sh\necho $0 $* >>"+dir+"/calls\n"+script), 0o700); err != nil {
			t.Fatal(err)
		}
		return path
	}
	return &tuned{
		data: dir, runs: filepath.Join(dir, "runs"), script: program("tuned.py", ""), splits: 2, rows: 30, tests: 5, trials: 7,
		sets: []string{"line"}, names: []string{tunedOurs, "krr"},
		tuner: program("tuner", `case $1 in
auto) test $(wc -l <train.csv) = 30 && echo '{"best":{"values":{"lambda":"1"}}}' ;;
evaluate) test $(wc -l <test.csv) = 5 && echo '{"rmse":2}' ;;
version) echo v1 ;;
esac
`),
		python: program("python", `test "$2 $5 $6" = "krr 7 5" && echo '{"rmse":4,"cpu":3,"version":"sk","params":{}}'
`),
	}
}

// A run is done once, and a run that failed is done again. The table has the means of the
// splits that all learners have.
func TestTunedContinues(t *testing.T) {
	u := tunedFixture(t)
	if err := u.check(); err != nil {
		t.Fatal(err)
	}
	python := u.python
	u.python = filepath.Join(u.data, "none")
	if err := u.runAll(); err == nil || !strings.Contains(err.Error(), "line, split 2, krr") {
		t.Errorf("without Python: %v", err)
	}
	var out bytes.Buffer
	if err := u.report(&out); err != nil || strings.Contains(out.String(), "| line") {
		t.Errorf("%s, %v", out.String(), err)
	}
	u.python = python
	for range 2 {
		if err := u.runAll(); err != nil {
			t.Fatal(err)
		}
	}
	calls, err := os.ReadFile(filepath.Join(u.data, "calls"))
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Count(string(calls), "\n"); got != 2*3+2 {
		t.Errorf("%d calls:\n%s", got, calls)
	}
	if err := u.report(&out); err != nil || !strings.Contains(out.String(), "| line | 30 | 2 | 2 / ") || !strings.HasSuffix(out.String(), " 4 / 3 | 0.50 | - |\n\nsk\nv1\n") {
		t.Errorf("%s, %v", out.String(), err)
	}
}

// Runs with different settings, data, programs or scripts have different files.
func TestTunedFiles(t *testing.T) {
	u := tunedFixture(t)
	seen := map[string]bool{}
	add := func(set string, split int, name string) bool {
		path, err := u.path(set, split, name)
		if err != nil {
			t.Fatal(err)
		}
		again := seen[path]
		seen[path] = true
		return !again
	}
	if !add("line", 0, "krr") || add("line", 0, "krr") || !add("line", 1, "krr") || !add("line", 0, "svr") || !add("line", 0, tunedOurs) {
		t.Errorf("%v", seen)
	}
	for what, change := range map[string]func(){
		"rows":   func() { u.rows++ },
		"tests":  func() { u.tests++ },
		"trials": func() { u.trials++ },
	} {
		if change(); !add("line", 0, "krr") || !add("line", 0, tunedOurs) {
			t.Errorf("other %s have no file of their own: %v", what, seen)
		}
	}
	for _, c := range []struct {
		file        string
		peers, ours bool // have new files
	}{{u.script, true, false}, {u.tuner, false, true}, {u.set("line"), true, true}} {
		if err := os.WriteFile(c.file, []byte("other"), 0o600); err != nil {
			t.Fatal(err)
		}
		u.digests = nil // as in another process
		if peers, ours := add("line", 0, "krr"), add("line", 0, tunedOurs); peers != c.peers || ours != c.ours {
			t.Errorf("after a change of %s, new files of krr %v, of ours %v", c.file, peers, ours)
		}
	}
	u.digests = nil
	if _, err := u.path("none", 0, "krr"); err == nil {
		t.Error("a set without a file has runs")
	}
}

// Splits differ, and no row trains and tests.
func TestTunedSplits(t *testing.T) {
	u := tunedFixture(t)
	lines, err := linesOf(filepath.Join(u.data, "uci", "line.data.csv.gz"))
	if err != nil || len(lines) != 50 {
		t.Fatal(len(lines), err)
	}
	train, test, err := u.deal(lines, 0, u.rows)
	if err != nil {
		t.Fatal(err)
	}
	other, _, err := u.deal(lines, 1, u.rows)
	if err != nil {
		t.Fatal(err)
	}
	all := slices.Concat(train, test)
	slices.Sort(all)
	if len(train) != 30 || len(test) != 5 || len(slices.Compact(all)) != 35 || slices.Equal(train, other) {
		t.Errorf("%d and %d rows, %v, %v", len(train), len(test), train, other)
	}
}

// Wrong flags and data are named.
func TestTunedRefuses(t *testing.T) {
	for want, change := range map[string]func(*tuned){
		"there is no folder of data": func(u *tuned) { u.data = "" },
		"-splits 0":                  func(u *tuned) { u.splits = 0 },
		`there is no "svm"`:          func(u *tuned) { u.names = []string{"svm"} },
	} {
		u := tunedFixture(t)
		change(u)
		if err := u.check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	u := tunedFixture(t)
	u.sets = []string{"none"}
	if err := u.runAll(); err == nil || !strings.Contains(err.Error(), "none.data.csv.gz") {
		t.Errorf("no such set: %v", err)
	}
}
