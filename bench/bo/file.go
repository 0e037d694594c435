package bo

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// columns are the columns of a run's file.
var columns = []string{"trial", "value", "ok", "true", "best_true", "ask_s", "recommended_true", "mean", "sd"}

// earliest is the number of columns of the first version. Later ones append columns.
const earliest = 6

// runPath returns the file of a run in directory out.
func runPath(out, problem, optimiser string, seed uint64) string {
	return filepath.Join(out, "runs", filepath.FromSlash(problem), fmt.Sprintf("%s-%d.csv", optimiser, seed))
}

// write writes the run as its file in directory out, completely or not at all.
func (r *Run) write(out string) error {
	path := runPath(out, r.Problem, r.Optimiser, r.Seed)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".run-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // fails after success, when the file has been renamed
	err = r.encode(f)
	if err := errors.Join(err, f.Chmod(0o644), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

// encode writes the values common to all trials as lines "# key=value", then a table.
func (r *Run) encode(out io.Writer) error {
	g := func(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }
	var b strings.Builder
	for _, line := range [][2]string{
		{"problem", r.Problem},
		{"optimiser", r.Optimiser},
		{"version", r.Version},
		{"seed", strconv.FormatUint(r.Seed, 10)},
		{"clock", r.Clock},
		{"best", g(r.Best)},
		{"median", g(r.Median)},
		{"ended", r.Ended},
	} {
		fmt.Fprintf(&b, "# %s=%s\n", line[0], strings.Join(strings.Fields(line[1]), " "))
	}
	w := csv.NewWriter(&b)
	rows := [][]string{columns}
	for i, t := range r.Trials {
		rows = append(rows, []string{
			strconv.Itoa(i), g(t.Value), strconv.FormatBool(t.OK), g(t.True), g(t.BestTrue), strconv.FormatFloat(t.AskSeconds, 'g', 4, 64), g(t.Recommended), g(t.Mean), g(t.StdDev),
		})
	}
	if err := w.WriteAll(rows); err != nil {
		return err
	}
	_, err := io.WriteString(out, b.String())
	return err
}

// FileError reports an invalid file of a run.
type FileError struct {
	Path string
	Err  error
}

func (e *FileError) Error() string {
	return fmt.Sprintf("%s is not a valid file of a run: %v; delete it to run it again", e.Path, e.Err)
}

// Unwrap returns the cause.
func (e *FileError) Unwrap() error { return e.Err }

// readRun reads a run's file. The error wraps fs.ErrNotExist if there is none.
func readRun(out, problem, optimiser string, seed uint64) (*Run, error) {
	path := runPath(out, problem, optimiser, seed)
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	r, err := decodeRun(string(text))
	if err == nil && (r.Problem != problem || r.Optimiser != optimiser || r.Seed != seed) {
		err = fmt.Errorf("it belongs to %s on %s, seed %d", r.Optimiser, r.Problem, r.Seed)
	}
	if err != nil {
		return nil, &FileError{path, err}
	}
	return r, nil
}

func decodeRun(text string) (*Run, error) {
	head := make(map[string]string)
	for strings.HasPrefix(text, "# ") {
		line, rest, _ := strings.Cut(text, "\n")
		key, value, found := strings.Cut(line[2:], "=")
		if !found {
			return nil, fmt.Errorf("the line %.60q has no =", line)
		}
		head[key], text = value, rest
	}
	p := &parser{}
	r := &Run{
		Problem: head["problem"], Optimiser: head["optimiser"], Version: head["version"], Clock: head["clock"], Ended: head["ended"],
		Best: p.float(head["best"]), Median: p.float(head["median"]),
	}
	var err error
	if r.Seed, err = strconv.ParseUint(head["seed"], 10, 64); err != nil {
		return nil, err
	}
	rows, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	if err != nil {
		return nil, err
	}
	if len(rows) == 0 || len(rows[0]) < earliest || len(rows[0]) > len(columns) || !slices.Equal(rows[0], columns[:len(rows[0])]) {
		return nil, fmt.Errorf("its columns are not %s", strings.Join(columns, ", "))
	}
	for _, row := range rows[1:] {
		t := Trial{
			Value: p.float(row[1]), OK: row[2] == "true", True: p.float(row[3]), BestTrue: p.float(row[4]), AskSeconds: p.float(row[5]),
			Recommended: math.NaN(), Mean: math.NaN(), StdDev: math.NaN(),
		}
		for i, v := range []*float64{&t.Recommended, &t.Mean, &t.StdDev} {
			if earliest+i < len(row) {
				*v = p.float(row[earliest+i])
			}
		}
		r.Trials = append(r.Trials, t)
	}
	if p.err == nil && !(r.Median > r.Best) {
		p.err = fmt.Errorf("the median %v is not more than the best, %v", r.Median, r.Best)
	}
	return r, p.err
}

// parser keeps the first error.
type parser struct{ err error }

func (p *parser) float(text string) float64 {
	v, err := strconv.ParseFloat(text, 64)
	if err != nil && p.err == nil {
		p.err = err
	}
	return v
}

// forget deletes a run's file, if it exists.
func forget(out, problem, optimiser string, seed uint64) (existed bool, err error) {
	err = os.Remove(runPath(out, problem, optimiser, seed))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}
