package dataset

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/bkbtuner/bkb/learners/data"
)

// targetFile reads targets that are apart, in Options.TargetPath or an array of an archive.
type targetFile struct {
	in        *input
	rowReader // nil if no targets are apart
}

// width returns the number of targets that are apart.
func (f *targetFile) width() int {
	if f.rowReader == nil {
		return 0
	}
	_, n := f.columns()
	return n
}

func openTargets(ctx context.Context, o *Options) (*targetFile, error) {
	in, err := openFile(ctx, o.TargetPath)
	if err != nil {
		return nil, err
	}
	other := Options{Missing: o.Missing, Header: HeaderAuto}
	if other.Format, _ = detectFormat(in.path, in.head()); other.Format == LibSVM || other.Format == Chunks {
		err = &FileError{File: in.path, Reason: fmt.Sprintf("a target file cannot have the format %s", other.Format)}
	}
	var r rowReader
	if err == nil {
		r, _, err = in.reader(&other, &Report{})
	}
	if err != nil {
		in.close()
		return nil, err
	}
	return &targetFile{in, r}, nil
}

// next reads the targets of a row. more is false at the end of both files.
func (f *targetFile) next(b *builder, width int, ended bool) (more bool, err error) {
	err = f.rowReader.next(b, width)
	switch {
	case err == io.EOF && ended:
		return false, nil
	case err == io.EOF:
		return false, &FileError{File: f.in.path, Reason: fmt.Sprintf("inputs and targets have different numbers of rows: it ends after %s; there are more inputs", count(b.rows, "row"))}
	case err != nil:
		return false, err
	case ended:
		return false, &FileError{File: f.in.path, Reason: fmt.Sprintf("inputs and targets have different numbers of rows: it has more rows than the inputs, %d", b.rows)}
	}
	return true, nil
}

// labelsError reports labels of classes that are not the numbers that they are read as.
type labelsError struct{ column string }

func (e *labelsError) Error() string {
	return fmt.Sprintf("dataset: the labels of the target %q are no plain integers, and standard input is read only once; name the column in Categorical", e.column)
}

// checkLabels returns a labelsError if the target has classes that must be texts.
func (t *Table) checkLabels(o *Options, b *builder) error {
	if len(t.targets) != 1 || o.Model != nil || o.Task == data.Regression {
		return nil
	}
	c := t.targets[0]
	odd := b.cols[slices.Index(b.slot, c)].odd
	if col := &t.columns[c]; odd && col.Kind == data.Numeric && (o.Task == data.Classification || col.Constant() || two(col)) {
		return &labelsError{col.Name}
	}
	return nil
}

// candidates returns the columns that may become targets.
func (t *Table) candidates(o *Options, names []string) []int {
	switch {
	case len(names) == 0 || len(t.targets) > 0 || o.NoTarget || o.Model != nil:
		return t.targets
	case t.named:
		return []int{namedTarget(names)}
	}
	return []int{0, len(names) - 1}
}

// namedTarget returns the column that is called a target, or the last one.
func namedTarget(names []string) int {
	if name := firstNamed(names, targetNames...); name != "" {
		return slices.Index(names, name)
	}
	return len(names) - 1
}

// targetNames are the names of columns that are targets by default.
var targetNames = []string{"target", "label", "class", "outcome", "y"}

// chooseTarget detects the target unless the options name it.
func (t *Table) chooseTarget(o *Options) error {
	why := &t.report.TargetWhy
	switch {
	case o.Model != nil:
		*why = "as in the model"
	case o.TargetPath != "":
		*why = "the target file"
	case o.NoTarget || len(o.Target) > 0:
		*why = "as asked"
	case len(t.targets) > 0:
		*why = "the array of targets"
	default:
		var c int
		if c, *why = t.guessTarget(); c >= 0 {
			t.targets = []int{c}
		}
	}
	if len(t.targets) == len(t.columns) {
		return errors.New("dataset: there is no column left for inputs")
	}
	return nil
}

// guessTarget returns a column, or −1, and the reason.
func (t *Table) guessTarget() (int, string) {
	last := len(t.columns) - 1
	switch {
	case last == 0:
		return -1, "there is one column only"
	case t.report.Format != CSV && t.report.Format != Parquet && t.report.Format != JSON:
		return -1, fmt.Sprintf("the format %s does not say", t.report.Format)
	case t.named:
		if name := firstNamed(t.names(), targetNames...); name != "" {
			return slices.Index(t.names(), name), "by its name"
		}
		return last, "it is the last column, and no name says otherwise; see Options.Target"
	case two(&t.columns[0]) && !two(&t.columns[last]):
		return 0, "the first column has two values, the last has not; see Options.Target"
	}
	return last, "it is the last column; see Options.Target"
}

func two(c *Column) bool { return c.Values == 2 && (c.Whole || c.Kind == data.Categorical) }
