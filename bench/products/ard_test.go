//go:build linux

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Permuted columns have the values of the input, in another order, and the row itself
// stays at the end.
func TestPermutedColumns(t *testing.T) {
	lines := generated(50)
	if again := generated(50); !slices.Equal(lines, again) || slices.Equal(lines[:25], lines[25:]) {
		t.Error("the generated rows are not those of the seed")
	}
	wide, err := withPermuted(lines, 2)
	if err != nil {
		t.Fatal(err)
	}
	column := func(lines []string, c int) []string {
		var out []string
		for _, l := range lines {
			out = append(out, strings.Split(l, ",")[c])
		}
		return out
	}
	for c := range 40 {
		want := column(lines, c)
		if !slices.Equal(column(wide, 80+c), want) {
			t.Errorf("input %d is not in its place", c)
		}
		for _, at := range []int{39 - c, 79 - c} {
			got := column(wide, at)
			moved := !slices.Equal(got, want)
			slices.Sort(got)
			sorted := slices.Sorted(slices.Values(want))
			if !moved || !slices.Equal(got, sorted) {
				t.Errorf("column %d is not a permutation of input %d", at, c)
			}
		}
	}
	if !slices.Equal(column(wide, 120), column(lines, 40)) {
		t.Error("the target has moved")
	}
	if _, err := withPermuted([]string{"1,2", "3"}, 1); err == nil {
		t.Error("a short row is accepted")
	}
}

// The sets are made from real ones once, runs continue, the process has fewer rows, and the
// table has the ratio.
func TestLengthScalesCompared(t *testing.T) {
	u := tunedFixture(t)
	from := u.data
	u.data, u.sets, u.names, u.tests, u.splits = filepath.Join(from, "made"), []string{"line-permuted"}, []string{ardOurs, ardPeer}, 5, 1
	u.gpRows = 20
	if err := makeSets(u.data, from, u.sets); err != nil {
		t.Fatal(err)
	}
	for path, text := range map[string]string{
		u.tuner:  "case $1 in train) test $(wc -l <train.csv) = 30 && echo '{\"best\":0.5}' ;; evaluate) echo '{\"rmse\":2}' ;; version) echo v1 ;; esac\n",
		u.python: "test \"$2\" = gp-ard && test $(wc -l <train.csv) = 20 && head -1 train.csv | grep -q '.*,.*,.*,.*,' && echo '{\"rmse\":4,\"version\":\"sk\",\"cpu\":12.3,\"params\":{}}'\n",
	} {
		if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := u.check(); err != nil {
		t.Fatal(err)
	}
	if err := u.runAll(); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := u.reportARD(&out, []int{20, 30}); err != nil || !strings.Contains(out.String(), "| line-permuted | 30 | 1 | 4 (20 rows) | 2 | 0.500 | 12 |") || strings.Contains(out.String(), "| 20 |") {
		t.Errorf("%s, %v", out.String(), err)
	}
	if err := makeSets(u.data, from, []string{"none"}); err == nil {
		t.Error("a set without a file is made")
	}
}
