//go:build linux

package main

import (
	"bytes"
	"compress/gzip"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/bkbtuner/bkb/internal/stream"
)

// ardSets are sets of which many inputs have no effect. parkinsons is used as it is.
var ardSets = []string{"generated", "kin40k-permuted", "parkinsons"}

const (
	ardOurs = "train falkon"
	ardPeer = "gp-ard" // in ard.py
	// ardRows is the size of the generated set, of which four fifths can train.
	ardRows = 25_000
)

// compareARD does the runs that have no file yet, one at a time, and prints a table of all of
// them.
func compareARD(python, dir string, args []string) {
	script, err := filepath.Abs(filepath.Join(dir, "ard.py"))
	if err != nil {
		log.Fatal(err)
	}
	t := tuned{python: python, script: script, names: []string{ardOurs, ardPeer}, trials: 1}
	var from, sets, sizes string
	flags := flag.NewFlagSet("ard", flag.ExitOnError)
	flags.StringVar(&from, "data", os.Getenv("BKB_DATA"), "`folder` of real data, which has a folder uci")
	flags.StringVar(&t.runs, "runs", "bench-ard", "`folder` of the runs and of the sets made for them")
	flags.StringVar(&t.tuner, "tuner", "../bin/tuner", "the `program` tuner")
	flags.IntVar(&t.splits, "splits", 5, "random splits of each set")
	flags.StringVar(&sizes, "rows", "500,1000,2000,20000", "`numbers` of training rows")
	flags.IntVar(&t.gpRows, "gp-rows", 2000, "training rows of the process at most, which takes O(n³) time; 0 for all")
	flags.IntVar(&t.tests, "tests", 4000, "test rows at most")
	flags.StringVar(&sets, "sets", strings.Join(ardSets, ","), "`sets` to compare on")
	report := flags.Bool("report", false, "only print the table of the runs there are")
	_ = flags.Parse(args) // exits on an error
	t.sets, t.data = strings.Split(sets, ","), t.runs
	rows, err := parseCounts(sizes)
	if err != nil {
		log.Fatalf("-rows is %q, want numbers of training rows", sizes)
	}
	t.rows = slices.Min(rows)
	if from == "" {
		log.Fatal("there is no folder of data; name one with -data or BKB_DATA")
	}
	if err := errors.Join(t.check(), makeSets(t.data, from, t.sets)); err != nil {
		log.Fatal(err)
	}
	for _, t.rows = range rows {
		if *report {
			break
		}
		if err := t.runAll(); err != nil {
			log.Print(err)
		}
	}
	machine(os.Stdout)
	if err := t.reportARD(os.Stdout, rows); err != nil {
		log.Fatal(err)
	}
}

// makeSets writes sets into the folder uci of a folder. Real ones come from the folder from.
func makeSets(dir, from string, sets []string) error {
	if err := os.MkdirAll(filepath.Join(dir, "uci"), 0o755); err != nil {
		return err
	}
	for _, set := range sets {
		name, permuted := strings.CutSuffix(set, "-permuted")
		var lines []string
		var err error
		if set == "generated" {
			lines = generated(ardRows)
		} else {
			lines, err = linesOf((&tuned{data: from}).set(name))
		}
		if err == nil && permuted {
			lines, err = withPermuted(lines, 3)
		}
		if err != nil {
			return err
		}
		var text bytes.Buffer
		z := gzip.NewWriter(&text)
		_, err = io.WriteString(z, strings.Join(lines, "\n")+"\n")
		if err := errors.Join(err, z.Close(), os.WriteFile((&tuned{data: dir}).set(set), text.Bytes(), 0o644)); err != nil {
			return err
		}
	}
	return nil
}

// generated returns n rows of 40 standard normal inputs and a target, of which the first five
// inputs matter. The noise has the standard deviation 0.1.
func generated(n int) []string {
	rng := stream.New(1)
	out, row := make([]string, n), make([]float64, 41)
	for i := range out {
		for c := range 40 {
			row[c] = rng.NormFloat64()
		}
		row[40] = math.Sin(2*row[0]) + row[1]*row[2] + math.Cos(row[3]+row[4]) + 0.1*rng.NormFloat64()
		out[i] = line(row)
	}
	return out
}

// withPermuted puts copies of the inputs in front, times times, each column in an order of
// its own.
func withPermuted(lines []string, times int) ([]string, error) {
	rng := stream.New(1)
	inputs := strings.Count(lines[0], ",")
	out := slices.Clone(lines)
	for range times {
		for c := range inputs {
			for i, from := range rng.Perm(len(lines)) {
				cells := strings.Split(lines[from], ",")
				if len(cells) != inputs+1 {
					return nil, fmt.Errorf("line %d has %d columns, the first %d", from+1, len(cells), inputs+1)
				}
				out[i] = cells[c] + "," + out[i]
			}
		}
	}
	return out, nil
}

func line(row []float64) string {
	var b strings.Builder
	for i, v := range row {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strconv.FormatFloat(v, 'g', 8, 64))
	}
	return b.String()
}

// reportARD prints the errors and CPU seconds of each split of each set and size that both
// have finished.
func (t *tuned) reportARD(w io.Writer, rows []int) error {
	fmt.Fprintf(w, "\nTest RMSE on at most %d rows\n\n| data | rows | seed | process | FALKON | ratio | process, s | FALKON, s |\n| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n", t.tests)
	var versions []string
	for _, set := range t.sets {
		for _, t.rows = range rows {
			for split := range t.splits {
				row, err := t.outcomes(set, split)
				if err != nil {
					return err
				}
				if row == nil {
					continue
				}
				ours, gp := row[0], row[1]
				process := significant(gp.RMSE, 4)
				if gp.Rows < ours.Rows {
					process += fmt.Sprintf(" (%d rows)", gp.Rows)
				}
				fmt.Fprintf(w, "| %s | %d | %d | %s | %s | %.3f | %s | %s |\n", set, ours.Rows, split+1,
					process, significant(ours.RMSE, 4), ours.RMSE/gp.RMSE, significant(gp.CPU, 2), significant(ours.CPU, 2))
				versions = append(versions, ours.Version, gp.Version)
			}
		}
	}
	slices.Sort(versions)
	_, err := fmt.Fprintf(w, "\n%s\n", strings.Join(slices.Compact(versions), "\n"))
	return err
}
