//go:build linux

package main

import (
	"compress/gzip"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Runs go on where they stopped, no row trains and tests, and the table has the means of the
// splits that all learners have. A program stands in for tuner.
func TestLearnersCompared(t *testing.T) {
	if out, err := exec.Command("python3", "-c", "import sklearn").CombinedOutput(); err != nil {
		t.Skipf("python3 has no scikit-learn: %s", out)
	}
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "uci"), 0o755); err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(filepath.Join(dir, "uci", "yacht.data.csv.gz"))
	if err != nil {
		t.Fatal(err)
	}
	z := gzip.NewWriter(f)
	for i := range 50 {
		fmt.Fprintf(z, "%d,%d\n", i, 2*i)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	tuner := filepath.Join(dir, "tuner")
	if err := os.WriteFile(tuner, []byte(`#!/bin/sh
echo $1 >>`+dir+`/calls
case $1 in
auto) test $(wc -l <train.csv) = 30 && test -z "$(sort train.csv test.csv | uniq -d)" && echo '{"algorithm":"falkon","best":{"values":{}}}' ;;
evaluate) test $(wc -l <test.csv) = 10 && echo '{"rmse":2}' ;;
version) echo v1 ;;
esac
`), 0o700); err != nil {
		t.Fatal(err)
	}
	runs := filepath.Join(dir, "runs.csv")
	for _, splits := range []string{"1", "2", "2"} {
		out, err := exec.Command("python3", "learners.py", "--data", dir, "--tuner", tuner, "--out", runs, "--sets", "yacht",
			"--learners", "auto falkon,gp-gaussian", "--rows", "30", "--splits", splits).CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	calls, err := os.ReadFile(filepath.Join(dir, "calls"))
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Count(string(calls), "auto"); got != 2 {
		t.Errorf("%d calls of auto:\n%s", got, calls)
	}
	out, err := exec.Command("python3", "learners.py", "--report", runs).CombinedOutput()
	if text, _ := os.ReadFile(runs); err != nil || !strings.Contains(string(out), "| yacht | 30 | 2 | ") || strings.Contains(string(text), "failed") {
		t.Errorf("%v: %s\n%s", err, out, text)
	}
}
