//go:build linux

package main

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"log"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/bkbtuner/bkb/learners/data"
)

// tunedSets are regressions of the folder uci.
var tunedSets = []string{"yacht", "pendulum", "energy", "concrete", "airfoil", "parkinsons", "kin40k", "protein"}

// tunedPeers are the names in tuned.py. Ours comes first in the table.
var tunedPeers = []string{"krr", "svr", "gp-ard", "hgb"}

const tunedOurs = "auto falkon"

// tunedTitles are the names in the table.
var tunedTitles = map[string]string{
	tunedOurs: "ours", "krr": "KRR", "svr": "SVR", "gp-ard": "GP-ARD", "hgb": "HistGradientBoosting",
}

// tunedLong is the time limit of a run.
const tunedLong = 6 * time.Hour

// tuned is a comparison of tuner auto falkon with tuned learners of scikit-learn.
type tuned struct {
	data, runs, tuner, python, script string
	splits, rows, tests, trials       int
	gpRows                            int // training rows of gp-ard at most; 0 for all
	sets, names                       []string

	digests map[string]string // of files, by path
}

// outcome is the result of a run, in a file.
type outcome struct {
	RMSE    float64         `json:"rmse"`
	CPU     float64         `json:"cpu"`     // seconds
	Seconds float64         `json:"seconds"` // of wall time
	Rows    int             `json:"rows"`    // of training
	Version string          `json:"version"`
	Params  json.RawMessage `json:"params"`
}

// compareTuned does the runs that have no file yet, one at a time, and prints a table of all
// of them.
func compareTuned(python, dir string, args []string) {
	script, err := filepath.Abs(filepath.Join(dir, "tuned.py"))
	if err != nil {
		log.Fatal(err)
	}
	t := tuned{python: python, script: script}
	var sets, names string
	flags := flag.NewFlagSet("tuned", flag.ExitOnError)
	flags.StringVar(&t.data, "data", os.Getenv("BKB_DATA"), "`folder` of real data, which has a folder uci")
	flags.StringVar(&t.runs, "runs", "bench-tuned", "`folder` of the runs")
	flags.StringVar(&t.tuner, "tuner", "../bin/tuner", "the `program` tuner")
	flags.IntVar(&t.splits, "splits", 5, "random splits of each set")
	flags.IntVar(&t.rows, "rows", 10_000, "training rows at most")
	flags.IntVar(&t.tests, "tests", 5_000, "test rows at most")
	flags.IntVar(&t.trials, "trials", 60, "configurations of each search")
	flags.StringVar(&sets, "sets", strings.Join(tunedSets, ","), "`sets` of uci")
	flags.StringVar(&names, "learners", strings.Join(append([]string{tunedOurs}, tunedPeers...), ","), "what to compare")
	report := flags.Bool("report", false, "only print the table of the runs there are")
	_ = flags.Parse(args) // exits on an error
	t.sets, t.names = strings.Split(sets, ","), strings.Split(names, ",")
	if err := t.check(); err != nil {
		log.Fatal(err)
	}
	if !*report {
		if err := t.runAll(); err != nil {
			log.Print(err)
		}
	}
	machine(os.Stdout)
	if err := t.report(os.Stdout); err != nil {
		log.Fatal(err)
	}
}

func (t *tuned) check() error {
	switch {
	case t.data == "":
		return errors.New("there is no folder of data; name one with -data or BKB_DATA")
	case t.splits < 1 || t.rows < 20 || t.tests < 1 || t.trials < 1:
		return fmt.Errorf("-splits %d, -rows %d, -tests %d, -trials %d: must be at least 1, 20, 1 and 1", t.splits, t.rows, t.tests, t.trials)
	}
	for _, name := range t.names {
		if t.command(name) == nil && !slices.Contains(tunedPeers, name) {
			return fmt.Errorf("-learners: there is no %q; choose from %s, %s", name, tunedOurs, strings.Join(tunedPeers, ", "))
		}
	}
	return os.MkdirAll(t.runs, 0o755)
}

// runAll does the missing runs. Sets of few rows come first, and of these the first split of
// all sets before the second. A run that fails leaves no file, and the next follows.
func (t *tuned) runAll() error {
	var failed error
	for _, sets := range t.bySize() {
		for split := range t.splits {
			for _, set := range sets {
				for _, name := range t.names {
					if err := t.runOnce(set, split, name); err != nil {
						failed = errors.Join(failed, fmt.Errorf("%s, split %d, %s: %w", set, split+1, name, err))
					}
				}
			}
		}
	}
	return failed
}

// bySize returns the sets whose peers take minutes, and those whose peers take hours.
func (t *tuned) bySize() (groups [2][]string) {
	for _, set := range t.sets {
		// A set that cannot be read fails later.
		if lines, err := linesOf(t.set(set)); err != nil || len(lines) <= 2000 {
			groups[0] = append(groups[0], set)
		} else {
			groups[1] = append(groups[1], set)
		}
	}
	return groups
}

// runOnce does a run that has no file.
func (t *tuned) runOnce(set string, split int, name string) error {
	path, err := t.path(set, split, name)
	if err != nil {
		return err
	}
	if _, err := os.Stat(path); err == nil {
		return nil
	}
	o, err := t.run(set, split, name)
	if err == nil {
		err = keep(path, o)
	}
	if err == nil {
		log.Printf("%s, split %d, %s: RMSE %.5g, %.1f s of CPU", set, split+1, name, o.RMSE, o.CPU)
	}
	return err
}

// path is the file of a run. Its name has the settings, and a digest of the data and of the
// program or script. Runs that may differ therefore have different files. The version of
// scikit-learn is in the file, and the report prints it.
func (t *tuned) path(set string, split int, name string) (string, error) {
	program := t.script
	if t.command(name) != nil {
		program = t.tuner
	}
	sum := sha256.New()
	for _, file := range []string{t.set(set), program} {
		if t.digests[file] == "" {
			text, err := os.ReadFile(file)
			if err != nil {
				return "", err
			}
			if t.digests == nil {
				t.digests = map[string]string{}
			}
			t.digests[file] = fmt.Sprintf("%x", sha256.Sum256(text))
		}
		io.WriteString(sum, t.digests[file])
	}
	return filepath.Join(t.runs, fmt.Sprintf("%s-%d-%d-%d-%d-%s-%x.json",
		set, t.most(name), t.tests, t.trials, split+1, strings.ReplaceAll(name, " ", "-"), sum.Sum(nil)[:4])), nil
}

// most is the largest number of training rows of a learner.
func (t *tuned) most(name string) int {
	if name == ardPeer && t.gpRows > 0 {
		return min(t.rows, t.gpRows)
	}
	return t.rows
}

// set is the file of a set.
func (t *tuned) set(name string) string { return filepath.Join(t.data, "uci", name+".data.csv.gz") }

// keep writes a file whole or not at all.
func keep(path string, o *outcome) error {
	text, err := json.Marshal(o)
	if err != nil {
		return err
	}
	if err := os.WriteFile(path+".part", append(text, '\n'), 0o644); err != nil {
		return err
	}
	return os.Rename(path+".part", path)
}

// run writes the rows of a split and runs a learner on them.
func (t *tuned) run(set string, split int, name string) (*outcome, error) {
	lines, err := linesOf(t.set(set))
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "tuned")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	train, test, err := t.deal(lines, split, t.most(name))
	if err != nil {
		return nil, err
	}
	err = errors.Join(
		os.WriteFile(filepath.Join(dir, "train.csv"), []byte(strings.Join(train, "\n")+"\n"), 0o644),
		os.WriteFile(filepath.Join(dir, "test.csv"), []byte(strings.Join(test, "\n")+"\n"), 0o644))
	if err != nil {
		return nil, err
	}
	o := &outcome{}
	if command := t.command(name); command != nil {
		err = t.ours(o, dir, split, command)
	} else {
		folds := 5
		if len(train) >= 2000 { // as in tuner auto
			folds = 1
		}
		var out []byte
		_, out, err = execute(dir, t.python, t.script, name, "train.csv", "test.csv", fmt.Sprint(t.trials), fmt.Sprint(folds), fmt.Sprint(split+1))
		if err == nil {
			err = json.Unmarshal(out, o)
		}
	}
	o.Rows = len(train)
	if err == nil && !(o.RMSE > 0 && !math.IsInf(o.RMSE, 1)) {
		err = fmt.Errorf("the test RMSE is %v", o.RMSE)
	}
	return o, err
}

// deal returns rows that train, at most so many, and of the other fifth at most t.tests that test.
func (t *tuned) deal(lines []string, split, rows int) (train, test []string, err error) {
	parts, err := data.Split(len(lines), nil, uint64(split)+1, 0.8, 0.2)
	if err != nil {
		return nil, nil, err
	}
	take := func(rows []int, most int) (out []string) {
		// The rows of a part are in order, so every k-th is taken.
		n := min(len(rows), most)
		for i := range n {
			out = append(out, lines[rows[i*len(rows)/n]])
		}
		return out
	}
	return take(parts[0], rows), take(parts[1], t.tests), nil
}

// command returns the arguments of tuner for a learner of ours, or nil for one in Python.
func (t *tuned) command(name string) []string {
	switch name {
	case tunedOurs:
		return []string{"auto", "falkon", "--trials", fmt.Sprint(t.trials), "-j", "1", "--threads", "1", "--db", "tuner.db"}
	case ardOurs:
		return []string{"train", "falkon", "--length-scale", "auto", "--centers", "2000", "--iterations", "100", "--validation", "0", "--workers", "1"}
	}
	return nil
}

// ours runs tuner, and tuner evaluate, as a user would, with one thread.
func (t *tuned) ours(o *outcome, dir string, split int, args []string) error {
	tuner, err := filepath.Abs(t.tuner) // it runs in another folder
	if err != nil {
		return err
	}
	began := time.Now()
	cpu, out, err := execute(dir, tuner, append(slices.Clone(args), "--data", "train.csv", "--header", "no", "--target", "-1", "--test", "0",
		"--seed", fmt.Sprint(split+1), "--out", "best.model", "--format", "json", "-q")...)
	if err != nil {
		return err
	}
	o.CPU, o.Seconds = cpu, time.Since(began).Seconds()
	var result struct {
		Best struct{ Values json.RawMessage } // of auto
	}
	if args[0] == "auto" {
		if err := json.Unmarshal(out, &result); err != nil {
			return err
		}
		o.Params = result.Best.Values
	}
	if _, out, err = execute(dir, tuner, "version"); err != nil {
		return err
	}
	o.Version = strings.TrimSpace(string(out))
	if _, out, err = execute(dir, tuner, "evaluate", "--model", "best.model", "--data", "test.csv", "--header", "no", "--format", "json"); err != nil {
		return err
	}
	return json.Unmarshal(out, o)
}

// execute runs a program in a folder. It returns the CPU time and the output.
func execute(dir, program string, args ...string) (cpu float64, out []byte, err error) {
	cmd := exec.Command(program, args...)
	var stdout, stderr bytes.Buffer
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, &stdout, &stderr
	if err := cmd.Start(); err != nil {
		return 0, nil, err
	}
	limit := time.AfterFunc(tunedLong, func() { _ = cmd.Process.Kill() })
	err = cmd.Wait()
	limit.Stop()
	if err != nil {
		text := stderr.String()
		return 0, nil, fmt.Errorf("%w: %s", err, text[max(0, len(text)-500):])
	}
	return (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds(), stdout.Bytes(), nil
}

// linesOf returns the lines of a gzipped file.
func linesOf(path string) ([]string, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	text, err := io.ReadAll(z)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return strings.Fields(string(text)), nil
}

// report prints the mean RMSE and CPU seconds of each set, over the splits that all
// learners have finished, and how ours compares.
func (t *tuned) report(w io.Writer) error {
	heads, versions := []string{"data", "rows", "splits"}, []string{}
	for _, name := range t.names {
		heads = append(heads, tunedTitles[name])
	}
	heads = append(heads, "to the best kernel method", "to HistGradientBoosting")
	fmt.Fprintf(w, "\nTest RMSE / CPU s, means over splits; %d configurations each, at most %d training and %d test rows\n\n", t.trials, t.rows, t.tests)
	fmt.Fprintf(w, "| %s |\n| ---%s |\n", strings.Join(heads, " | "), strings.Repeat(" | ---:", len(heads)-1))
	for _, set := range t.sets {
		runs, err := t.read(set)
		if err != nil {
			return err
		}
		if runs == nil {
			continue
		}
		fmt.Fprintf(w, "| %s | %d | %d |", set, runs[0][0].Rows, len(runs[0]))
		means := map[string]float64{}
		for i, name := range t.names {
			cpu := 0.0
			for _, o := range runs[i] {
				means[name] += o.RMSE / float64(len(runs[i]))
				cpu += o.CPU / float64(len(runs[i]))
				versions = append(versions, o.Version)
			}
			fmt.Fprintf(w, " %s / %s |", significant(means[name], 3), significant(cpu, 2))
		}
		ours, kernels := means[tunedOurs], math.Inf(1)
		for _, name := range []string{"krr", "svr", "gp-ard"} {
			if m, ok := means[name]; ok {
				kernels = min(kernels, m)
			}
		}
		fmt.Fprintf(w, " %s | %s |\n", ratioText(ours, kernels), ratioText(ours, means["hgb"]))
	}
	slices.Sort(versions)
	_, err := fmt.Fprintf(w, "\n%s\n", strings.Join(slices.Compact(versions), "\n"))
	return err
}

// read returns the outcomes by learner, of the splits that all learners have. It is nil if
// there are none.
func (t *tuned) read(set string) ([][]outcome, error) {
	all := make([][]outcome, len(t.names))
	for split := range t.splits {
		row, err := t.outcomes(set, split)
		if err != nil {
			return nil, err
		}
		if row == nil {
			continue
		}
		for i, o := range row {
			all[i] = append(all[i], o)
		}
	}
	if len(all[0]) == 0 {
		return nil, nil
	}
	return all, nil
}

// outcomes returns those of all learners on a split, or nil if one is missing.
func (t *tuned) outcomes(set string, split int) ([]outcome, error) {
	row := make([]outcome, len(t.names))
	for i, name := range t.names {
		path, err := t.path(set, split, name)
		if err != nil {
			return nil, err
		}
		text, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, nil
		} else if err != nil {
			return nil, err
		}
		if err := json.Unmarshal(text, &row[i]); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
	}
	return row, nil
}

// significant has n significant digits, or those of a larger whole number, and no exponent.
func significant(x float64, n int) string {
	y, err := strconv.ParseFloat(strconv.FormatFloat(x, 'e', n-1, 64), 64)
	if err != nil || math.Abs(x) >= math.Pow10(n) {
		return fmt.Sprintf("%.0f", x)
	}
	return strconv.FormatFloat(y, 'f', -1, 64)
}

// ratioText is a dash if a side is missing.
func ratioText(a, b float64) string {
	if !(a > 0 && b > 0) || math.IsInf(b, 1) {
		return "-"
	}
	return fmt.Sprintf("%.2f", a/b)
}
