package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"syscall"
	"unicode/utf8"

	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/learners"
	"github.com/bkbtuner/bkb/learners/data"
	"github.com/bkbtuner/bkb/learners/dataset"
	"github.com/bkbtuner/bkb/learners/krr"
	"github.com/bkbtuner/bkb/learners/training"
	"github.com/spf13/cobra"
)

// dataFlags say which files hold data and how to read them.
type dataFlags struct {
	paths     []string
	options   dataset.Options
	format    string
	delimiter string
	header    string
}

// dataHelp is the section on data in the help of commands that read them.
const dataHelp = `DATA
  CSV and the like, libsvm, .npy, .npz, Parquet and IDX, each perhaps gzipped; - is
  stdin. Format, delimiter, header and target are detected, and said on stderr; flags
  overrule. A column is named by its name or its position (1, -1 is the last).`

func (d *dataFlags) add(cmd *cobra.Command) {
	f, o := cmd.Flags(), &d.options
	f.StringArrayVar(&d.paths, "data", nil, "the `file` of the data; again for more of the same columns")
	f.StringVar(&d.format, "data-format", "", "csv, libsvm, npy, npz, parquet, idx or chunks (default: detected)")
	f.StringVar(&d.delimiter, "delimiter", "", "what separates the columns of text: a character, tab or space (default: detected)")
	f.StringVar(&d.header, "header", "", "whether the first line of text has names: yes or no (default: detected)")
	f.StringSliceVar(&o.Drop, "drop", nil, "`columns` to forget")
	f.StringSliceVar(&o.Categorical, "categorical", nil, "`columns` that are categories although they look like numbers")
	f.StringSliceVar(&o.Missing, "missing", nil, "`texts` that stand for a missing value, beside the empty cell (default: ?, NA, N/A, NaN, null)")
	f.BoolVar(&o.Float32, "float32", false, "hold the data in single precision: half the memory")
	f.StringVar(&o.ChunkFile, "chunk-file", "", "put the data into this `file` and read them from there: for more than memory holds")
	f.StringVar(&o.Array, "array", "", "the array of inputs of an .npz file")
	f.BoolVar(&o.ZeroBased, "zero-based", false, "features of libsvm files count from 0")
	f.IntVar(&o.Features, "num-features", 0, "the number of features of libsvm files (0: the largest there is)")
}

func (d *dataFlags) addTarget(cmd *cobra.Command) {
	f, o := cmd.Flags(), &d.options
	f.StringSliceVar(&o.Target, "target", nil, "the `columns` to predict (default: detected)")
	f.StringVar(&o.TargetPath, "target-file", "", "the `file` that holds the targets alone, row by row")
	f.StringVar(&o.TargetArray, "target-array", "", "the array of targets of an .npz file")
}

// open reads the table.
func (d *dataFlags) open(ctx context.Context) (*dataset.Table, error) {
	if len(d.paths) == 0 {
		return nil, usagef("name the file of the data with --data")
	}
	o := &d.options
	if o.Missing != nil && !slices.Contains(o.Missing, "") {
		o.Missing = append(o.Missing, "") // an empty cell never has a value
	}
	o.Format, o.Header = dataset.Format(d.format), dataset.Header(d.header)
	switch d.delimiter {
	case "":
	case "tab", `\t`:
		o.Delimiter = '\t'
	case "space":
		o.Delimiter = dataset.Whitespace
	default:
		r, size := utf8.DecodeRuneInString(d.delimiter)
		if size != len(d.delimiter) || r >= utf8.RuneSelf {
			return nil, usagef("--delimiter %q: must be one ASCII character, tab or space", d.delimiter)
		}
		o.Delimiter = r
	}
	t, err := dataset.Open(ctx, *o, d.paths...)
	return t, refused(err)
}

// openLabelled reads the table without the rows that lack a target, and says how many
// there are.
func (d *dataFlags) openLabelled(ctx context.Context, g *globals, cmd *cobra.Command) (*dataset.Table, error) {
	t, err := d.open(ctx)
	if err != nil {
		return nil, err
	}
	kept, err := g.labelled(ctx, cmd, t, nil)
	if err != nil {
		t.Close()
	}
	return kept, err
}

// labelled leaves out the rows of a table that lack a target, and says how many there
// are.
func (g *globals) labelled(ctx context.Context, cmd *cobra.Command, t *dataset.Table, e *data.Encoding) (*dataset.Table, error) {
	kept, skipped, err := t.Labelled(ctx, e)
	if err != nil {
		return nil, refused(err)
	}
	if skipped > 0 {
		g.note(cmd, "Skipped %s without a target.", countText(skipped, "row"))
	}
	return kept, nil
}

// encodeLabelled encodes the rows of a table that have a target.
func (g *globals) encodeLabelled(cmd *cobra.Command) encoder {
	return func(t *dataset.Table, ctx context.Context, e *data.Encoding) (data.Source, error) {
		kept, err := g.labelled(ctx, cmd, t, e)
		if err != nil {
			return nil, err
		}
		return kept.Encode(ctx, e)
	}
}

// dataError gives errors of data the exit status of a broken rule.
func dataError(err error) error {
	var (
		cell    *data.CellError
		columns *dataset.ColumnsError
		unknown *dataset.UnknownColumnError
		data    *learners.DataError
		value   *learners.ParameterError
		text    *training.ValueError
		finite  *kernel.NonFiniteError
		file    *dataset.FileError
		size    *krr.SizeError
		away    *learners.DivergenceError
		errno   syscall.Errno
	)
	if err == nil || errors.As(err, &errno) {
		return err
	}
	err = reworded(err)
	switch {
	case errors.As(err, &cell), errors.As(err, &columns), errors.As(err, &unknown), errors.As(err, &data), errors.As(err, &value),
		errors.As(err, &text), errors.As(err, &finite), errors.As(err, &file), errors.As(err, &size), errors.As(err, &away):
		return &statusError{exitInvalid, err}
	}
	return err
}

// refused gives errors of preparing data, which are all about the data but for
// those of files and Ctrl-C, the exit status of a broken rule.
func refused(err error) error {
	var (
		path  *fs.PathError
		errno syscall.Errno
	)
	if err == nil || errors.As(err, &path) || errors.As(err, &errno) || errors.Is(err, context.Canceled) {
		return err
	}
	return &statusError{exitInvalid, reworded(err)}
}

// remedies are what errors of Go packages advise, in the words of the command line.
var remedies = strings.NewReplacer(
	"fill it in by EncodingOptions.Missing", "fill it in with --impute median",
	"fill missing ones with the mean or the median", "fill missing ones with --impute mean or median",
	"name it in Missing", "name it with --missing",
	"or the column in Categorical", "or the column with --categorical",
	"or name the column in Categorical", "or name the column with --categorical",
	"name the column in Categorical", "name the column with --categorical",
	"say that the file has no header", "say --header no",
	"drop the column if it identifies rows", "--drop it if it identifies rows",
	"set ZeroBased", "give --zero-based",
	"Target, TargetPath, Drop and Categorical do not apply", "--target, --target-file, --drop and --categorical do not apply",
	"see Options.Target", "--target overrules",
	"or a larger max rows", "or a larger --max-rows",
)

// rewordedError is an error whose text speaks of flags.
type rewordedError struct {
	error
	text string
}

func (e *rewordedError) Error() string { return e.text }
func (e *rewordedError) Unwrap() error { return e.error }

// reworded returns err with remedies for the command line.
func reworded(err error) error {
	if text := remedies.Replace(err.Error()); text != err.Error() {
		return &rewordedError{err, text}
	}
	return err
}

// encodingFlags say how a table becomes numbers.
type encodingFlags struct {
	task, impute, unknown string
	options               data.EncodingOptions
}

var imputes = map[string]data.Missing{
	"": data.MissingError, "error": data.MissingError,
	"mean": data.FillMean, "median": data.FillMedian, "most-frequent": data.FillMostFrequent,
}

func (e *encodingFlags) add(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&e.task, "task", "", "regression or classification (default: by the target)")
	f.StringVar(&e.impute, "impute", "error", "what becomes of missing inputs: error, mean, median or most-frequent")
	f.StringVar(&e.unknown, "unknown", "zero", "what becomes of categories that training lacked: zero (none is set) or error")
	f.BoolVar(&e.options.KeepInputs, "keep-inputs", false, "leave inputs in their own units (default: z-scores)")
	f.BoolVar(&e.options.KeepTargets, "keep-targets", false, "leave numeric targets in their own units while fitting (default: z-scores)")
	f.BoolVar(&e.options.IgnoreExtra, "ignore-extra", false, "let data to predict have columns that training lacked")
}

func (e *encodingFlags) encoding() (data.EncodingOptions, error) {
	o := e.options
	switch t := data.Task(e.task); t {
	case "", data.Regression, data.Classification:
		o.Task = t
	default:
		return o, usagef("--task %s: must be regression or classification", e.task)
	}
	m, ok := imputes[e.impute]
	if !ok {
		return o, usagef("--impute %s: must be error, mean, median or most-frequent", e.impute)
	}
	o.Missing = m
	switch e.unknown {
	case "zero":
		o.Unknown = data.UnknownZero
	case "error":
		o.Unknown = data.UnknownError
	default:
		return o, usagef("--unknown %s: must be zero or error", e.unknown)
	}
	return o, nil
}

// noteTable says what was detected.
func (g *globals) noteTable(cmd *cobra.Command, t *dataset.Table, e *data.Encoding) {
	r := t.Report()
	if g.verbose > 0 {
		for line := range strings.Lines(r.String()) {
			g.note(cmd, "%s", remedies.Replace(strings.TrimSuffix(line, "\n")))
		}
	} else {
		task := ""
		if e != nil {
			task = taskText(e)
		}
		g.note(cmd, "%s, %s, target %s (%s)%s", countText(r.Rows, "row"), countText(r.Inputs, "input"), joinOr(r.Target, "none"), remedies.Replace(r.TargetWhy), task)
	}
	if e != nil {
		for _, n := range e.Notes {
			g.note(cmd, "%s", remedies.Replace(n))
		}
	}
}

// taskText says what is made of the target.
func taskText(e *data.Encoding) string {
	switch e.Task {
	case data.Classification:
		return fmt.Sprintf(": classification, %d classes", len(e.Classes))
	case data.Regression:
		return ": regression"
	}
	return ""
}

// countText is 1 row, 2 rows, ….
func countText(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprintf("%d %s", n, what)
}

func joinOr(words []string, none string) string {
	if len(words) == 0 {
		return none
	}
	return strings.Join(words, ", ")
}
