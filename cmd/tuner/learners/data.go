package learners

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"unicode/utf8"

	"github.com/bkbtuner/bkb/cmd/tuner/cli"
	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/learners"
	"github.com/bkbtuner/bkb/learners/data"
	"github.com/bkbtuner/bkb/learners/dataset"
	"github.com/bkbtuner/bkb/learners/krr"
	"github.com/bkbtuner/bkb/learners/training"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// dataFormat has the flags that several commands explain on one page.
var dataFormat = cli.Group{Title: "Data format", See: "tuner help data"}

// dataFlags name the files of data and describe their format.
type dataFlags struct {
	paths     dataFiles
	options   dataset.Options
	format    string
	delimiter string
	decimal   string
	header    string

	ignoreExtra bool // of predict and evaluate
}

func (d *dataFlags) add(cmd *cobra.Command) {
	o := &d.options
	cli.FlagGroup(cmd, cli.Group{Title: "Data"}, func(f *pflag.FlagSet) {
		f.Var(&d.paths, "data", "`file` or pattern, - for stdin (repeatable)")
	})
	cli.FlagGroup(cmd, dataFormat, func(f *pflag.FlagSet) {
		f.StringVar(&d.format, "data-format", "", "`format`, one of "+strings.Join(dataFormats, ", "))
		f.StringVar(&d.delimiter, "delimiter", "", "`character` between cells, or tab or space")
		f.StringVar(&d.decimal, "decimal", "", "`character` of decimal fractions, point or comma")
		f.BoolVar(&o.DayFirst, "day-first", false, "dates such as 2/1/2026 in January")
		f.StringVar(&d.header, "header", "", "`yes|no`, names in the first line of text")
		f.StringSliceVar(&o.Drop, "drop", nil, "`columns` to leave out")
		f.StringSliceVar(&o.Categorical, "categorical", nil, "`columns` of numbers that are categories")
		f.StringSliceVar(&o.Missing, "missing", nil, "`texts` of missing values")
		f.BoolVar(&o.Float32, "float32", false, "inputs in single precision")
		f.StringVar(&o.ChunkFile, "chunk-file", "", "`file` for the data instead of the memory")
		f.StringVar(&o.Array, "array", "", "`array` of the inputs in an .npz file")
		f.BoolVar(&o.ZeroBased, "zero-based", false, "libsvm features that count from 0")
		f.IntVar(&o.Features, "num-features", 0, "number of libsvm features")
	})
	cli.Register(cmd, "data-format", cli.Words(dataFormats...))
	cli.Register(cmd, "header", cli.Words("yes", "no"))
	cli.Register(cmd, "decimal", cli.Words("point", "comma"))
	cli.Register(cmd, "delimiter", cli.Words("tab", "space"))
}

var dataFormats = []string{"csv", "libsvm", "npy", "npz", "parquet", "json", "idx", "chunks"}

func (d *dataFlags) addTarget(cmd *cobra.Command) {
	o := &d.options
	cli.FlagGroup(cmd, cli.Group{Title: "Data"}, func(f *pflag.FlagSet) {
		f.StringSliceVar(&o.Target, "target", nil, "`columns` to predict (default detected)")
	})
	cli.FlagGroup(cmd, dataFormat, func(f *pflag.FlagSet) {
		f.StringVar(&o.TargetPath, "target-file", "", "`file` of the targets alone, row by row")
		f.StringVar(&o.TargetArray, "target-array", "", "`array` of the targets in an .npz file")
	})
}

// addIgnoreExtra adds the flag of predict and evaluate.
func (d *dataFlags) addIgnoreExtra(cmd *cobra.Command) {
	cli.FlagGroup(cmd, dataFormat, func(f *pflag.FlagSet) {
		f.BoolVar(&d.ignoreExtra, "ignore-extra", false, "leave out columns that training lacked")
	})
}

func (d *dataFlags) addWeights(cmd *cobra.Command, g cli.Group) {
	cli.FlagGroup(cmd, g, func(f *pflag.FlagSet) {
		f.StringVar(&d.options.Weights, "weights", "", "`column` of weights of rows (default 1 each)")
	})
}

// dataFiles are the values of --data. A pattern stands for the files that match it, in the
// order of their names.
type dataFiles []string

func (d *dataFiles) String() string { return strings.Join(*d, ",") }

func (d *dataFiles) Type() string { return "file" }

func (d *dataFiles) Set(text string) error {
	if _, err := os.Lstat(text); err == nil || !strings.ContainsAny(text, "*?[") {
		*d = append(*d, text)
		return nil
	}
	paths, err := filepath.Glob(text)
	switch {
	case err != nil:
		return cli.Usagef("--data %q: the pattern is not valid, because a [ has no ]; close it, or write \\[ for the character", text)
	case len(paths) == 0:
		return cli.Usagef("--data %q: no file matches the pattern; correct it, and quote it so that the shell leaves it as it is", text)
	}
	*d = append(*d, paths...)
	return nil
}

// These methods make it a [pflag.SliceValue], whose items are shown one by one.

func (d *dataFiles) Append(text string) error     { return d.Set(text) }
func (d *dataFiles) Replace(texts []string) error { *d = texts; return nil }
func (d *dataFiles) GetSlice() []string           { return *d }

var errNoData = cli.Usagef("there is no data; name the file with --data")

func (d *dataFlags) open(ctx context.Context) (*dataset.Table, error) {
	if len(d.paths) == 0 {
		return nil, errNoData
	}
	o := &d.options
	if o.Missing != nil && !slices.Contains(o.Missing, "") {
		o.Missing = append(o.Missing, "") // an empty cell never has a value
	}
	o.MaxMemory = cli.TableMemory()
	o.Format, o.Header = dataset.Format(d.format), dataset.Header(d.header)
	delimiter, size := utf8.DecodeRuneInString(d.delimiter)
	if named, ok := map[string]rune{"": 0, "tab": '\t', `\t`: '\t', "space": dataset.Whitespace}[d.delimiter]; ok {
		delimiter = named
	} else if size != len(d.delimiter) || delimiter >= utf8.RuneSelf {
		return nil, cli.Usagef("--delimiter %q: must be one ASCII character, tab or space", d.delimiter)
	}
	decimal, ok := map[string]rune{"": 0, "point": '.', ".": '.', "comma": ',', ",": ','}[d.decimal]
	if !ok {
		return nil, cli.OneOf("--decimal", d.decimal, "point", "comma")
	}
	o.Delimiter, o.Decimal = delimiter, decimal
	t, err := dataset.Open(ctx, *o, d.paths...)
	return t, refused(err)
}

// labelled leaves out the rows of a table that lack a target, and notes their number.
func labelled(ctx context.Context, g *cli.Globals, cmd *cobra.Command, t *dataset.Table, e *data.Encoding) (*dataset.Table, error) {
	kept, skipped, err := t.Labelled(ctx, e)
	if err != nil {
		return nil, refused(err)
	}
	if skipped > 0 {
		g.Note(cmd, "Skipped %s without a target.", cli.CountText(skipped, "row"))
	}
	return kept, nil
}

// encodeLabelled encodes the rows of a table that have a target, and sets weights to theirs.
func encodeLabelled(g *cli.Globals, cmd *cobra.Command, weights *[]float64) encoder {
	return func(t *dataset.Table, ctx context.Context, e *data.Encoding) (data.Source, error) {
		kept, err := labelled(ctx, g, cmd, t, e)
		if err != nil {
			return nil, err
		}
		*weights = kept.Weights()
		return kept.Encode(ctx, e)
	}
}

// dataError gives errors of data their exit status.
func dataError(err error) error {
	if err == nil || is[syscall.Errno](err) {
		return err
	}
	err = reworded(err)
	if is[*data.CellError](err) || is[*dataset.ColumnsError](err) || is[*dataset.UnknownColumnError](err) || is[*dataset.FileError](err) ||
		is[*learners.DataError](err) || is[*learners.ParameterError](err) || is[*learners.DivergenceError](err) ||
		is[*training.ValueError](err) || is[*kernel.NonFiniteError](err) || is[*krr.SizeError](err) {
		return cli.Exit(cli.ExitInvalid, err)
	}
	return err
}

// is reports whether an error has a cause of a type.
func is[T error](err error) bool {
	_, ok := errors.AsType[T](err)
	return ok
}

// refused gives errors of preparing data the exit status of errors of data. Errors of the
// operating system and of Ctrl-C keep theirs.
func refused(err error) error {
	if err == nil || is[*fs.PathError](err) || is[syscall.Errno](err) || errors.Is(err, context.Canceled) {
		return err
	}
	return cli.Exit(cli.ExitInvalid, reworded(err))
}

// remedies translates the advice of Go packages into flags.
var remedies = strings.NewReplacer(
	"fill it in by EncodingOptions.Missing", "fill it in with --impute median",
	"train the model with EncodingOptions.Missing", "train the model with --impute",
	"set IgnoreExtra to leave them out", "--ignore-extra leaves them out",
	"set Decimal if commas are decimal", "give --decimal comma if commas are decimal",
	"say so if their first row is a header", "give --header yes if their first row is a header",
	"say so if their first row is not a header", "give --header no if their first row is not a header",
	"set DayFirst", "give --day-first",
	"DayFirst contradicts; leave DayFirst out", "--day-first contradicts; leave it out",
	"give more rows, or no share for validation and test", "give more rows, or --validation 0",
	"fill missing ones with the mean or the median", "fill missing ones with --impute mean or median",
	"name it in Missing", "name it with --missing",
	"or the column in Categorical", "or the column with --categorical",
	"name the column in Categorical", "name the column with --categorical",
	"say that the file has no header", "say --header no",
	"drop the column if it identifies rows", "--drop it if it identifies rows",
	" (MaxMemory)", "", "set ChunkFile", "give --chunk-file",
	"set ZeroBased", "give --zero-based",
	"Target, TargetPath, Drop, Keep, Categorical and Weights do not apply", "--target, --target-file, --drop, --keep, --categorical and --weights do not apply",
	"see Options.Target", "--target overrules",
	"leave Float32 and the chunk file out, or let inputs be scaled", "leave out --keep-inputs, or --float32 and --chunk-file",
	"hold out more validation rows", "raise --validation",
	"use fewer folds", "use fewer --folds",
	"name another column as target", "name another column with --target",
	"or a larger max rows", "or a larger --max-rows",
)

// rewordedError is an error whose text names flags.
type rewordedError struct{ error }

func (e rewordedError) Error() string { return remedies.Replace(e.error.Error()) }
func (e rewordedError) Unwrap() error { return e.error }

// reworded returns err with remedies for the command line.
func reworded(err error) error { return rewordedError{err} }

// encodingFlags describe the encoding of a table as numbers.
type encodingFlags struct {
	task, impute, unknown string
	options               data.EncodingOptions
}

var imputes = map[string]data.Missing{
	"error": data.MissingError, "mean": data.FillMean, "median": data.FillMedian, "most-frequent": data.FillMostFrequent,
}

func (e *encodingFlags) add(cmd *cobra.Command) {
	cli.FlagGroup(cmd, dataFormat, func(f *pflag.FlagSet) {
		f.StringVar(&e.task, "task", "", "`task`, regression or classification")
		cli.ChoiceVar(f, &e.impute, "impute", "", "`way` for missing inputs", "error", "mean", "median", "most-frequent")
		cli.ChoiceVar(f, &e.unknown, "unknown", "", "`way` for new categories", "zero", "error")
		f.BoolVar(&e.options.KeepInputs, "keep-inputs", false, "inputs in their own units")
		f.BoolVar(&e.options.KeepTargets, "keep-targets", false, "numeric targets in their own units")
		f.BoolVar(&e.options.IgnoreExtra, "ignore-extra", false, "leave out columns that training lacked")
	})
	cli.Register(cmd, "task", cli.Words(string(data.Regression), string(data.Classification)))
}

func (e *encodingFlags) encoding() (data.EncodingOptions, error) {
	o := e.options
	o.Task, o.Missing = data.Task(e.task), imputes[e.impute]
	if e.unknown == "zero" {
		o.Unknown = data.UnknownZero
	}
	if e.task == "" {
		return o, nil
	}
	return o, cli.OneOf("--task", e.task, string(data.Regression), string(data.Classification))
}

// job is what train and auto have in common.
type job struct {
	algorithm training.Algorithm
	data      dataFlags
	encoding  encodingFlags
	split     training.Split
	measure   string
	classes   string // weights of classes
	calibrate bool
	out       string
	format    *string
}

// addWeights adds the flags of weights, which are on the page of train.
func (j *job) addWeights(cmd *cobra.Command) {
	group := cli.Group{Title: "Weights", See: "tuner train"}
	j.data.addWeights(cmd, group)
	cli.FlagGroup(cmd, group, func(f *pflag.FlagSet) {
		f.StringVar(&j.classes, "class-weight", "", "`weights` of classes in the fit, balanced or as in yes=3,no=1 (default 1 each)")
	})
	cli.Register(cmd, "class-weight", cli.Words(training.Balanced))
}

// addCalibrate adds a flag that is on the page of train.
func (j *job) addCalibrate(cmd *cobra.Command) {
	cli.FlagGroup(cmd, cli.Group{Title: "Validation", See: "tuner train"}, func(f *pflag.FlagSet) {
		f.BoolVar(&j.calibrate, "calibrate", false, "probabilities of classes by Platt scaling on the validation rows")
	})
}

// check refuses a file for the model, and a measure, that are wrong for all data.
func (j *job) check() error {
	if err := checkOut(j.out, "model", learners.Magic, append(slices.Clone(j.data.paths), j.data.options.TargetPath)); err != nil {
		return err
	}
	if err := j.algorithm.CheckMeasure(j.measure); err != nil {
		return cli.Usagef("--measure: %w", err)
	}
	return nil
}

// prepare reads, divides and encodes the data. The caller closes the table.
func (j *job) prepare(ctx context.Context, g *cli.Globals, cmd *cobra.Command) (*dataset.Table, *training.Data, error) {
	o, err := j.encoding.encoding()
	if err != nil {
		return nil, nil, err
	}
	j.data.options.Task = o.Task
	table, err := j.data.open(ctx)
	if err != nil {
		return nil, nil, err
	}
	kept, err := labelled(ctx, g, cmd, table, nil)
	if err != nil {
		table.Close()
		return nil, nil, err
	}
	data, err := training.Prepare(ctx, kept, j.split, o)
	if err != nil {
		kept.Close()
		return nil, nil, refused(err)
	}
	noteTable(g, cmd, kept, data.Encoding)
	return kept, data, nil
}

// noteTable notes in five lines what was learned from a table, with --verbose all of it.
func noteTable(g *cli.Globals, cmd *cobra.Command, t *dataset.Table, e *data.Encoding) {
	var lines []string
	if g.Verbose > 0 {
		lines = strings.Split(strings.TrimSpace(t.Report().String()), "\n")
	}
	if e != nil {
		lines = append(append(lines, t.Report().Summary(e)...), e.Notes...)
	}
	for _, line := range lines {
		g.Note(cmd, "%s", remedies.Replace(line))
	}
}

// Topics are the help pages that several commands share.
func Topics() []*cobra.Command { return []*cobra.Command{newDataTopic(), newParametersTopic()} }

func newDataTopic() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "data",
		Short: "Files of data for the learners",
		Long: `The learners read CSV and similar text, JSON, libsvm, .npy, .npz, Parquet and IDX
files, each perhaps gzipped. The file - is stdin.

What no flag sets is detected, and -v reports it. A column is named by its name or its
position (1 is the first, -1 the last). A row without a target is left out of training.
Missing are the empty cell, and ?, NA, N/A, #N/A, <NA>, NaN, NaT and null unless --missing is given.
Inputs and targets are z-scores. Texts are one-hot encoded, dates and times are seconds
since 1970, but 20240131 is a number. Labels of classes are texts unless all are plain
integers. Several files, or a quoted pattern such as 'part-*.parquet', give one table.`,
		Example: "  tuner train falkon --data housing.csv --target price --missing '?,n/a' \\\n    --impute median --out price.model",
	}
	var d dataFlags
	var e encodingFlags
	d.add(cmd)
	d.addTarget(cmd)
	e.add(cmd)
	return cmd
}
