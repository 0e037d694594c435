package learners

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/bkbtuner/bkb/cmd/tuner/cli"
	"github.com/bkbtuner/bkb/internal/atomicfile"
	"github.com/bkbtuner/bkb/learners"
	"github.com/bkbtuner/bkb/learners/data"
	"github.com/bkbtuner/bkb/learners/dataset"
	"github.com/bkbtuner/bkb/learners/training"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

func newPredict(g *cli.Globals) *cobra.Command {
	var flags dataFlags
	var model string
	var scores bool
	cmd := &cobra.Command{
		Use:   "predict --model MODEL --data FILE",
		Short: "Predict with a trained model",
		Long: `Predict writes the predictions of a model, one line for each row of the data.

A predicted number is in the unit of the target. For classes the line has the name of the
class, and its probability if the model has probabilities (log-falkon, or trained with
--calibrate), else its score. Columns of --keep come first, as the data have them.
The data must have the columns of the training data, read as they were read then. Dropped
columns, the weights and the target may be missing.

A NumPy array (npy) has the predicted numbers or classes, and with --scores the scores or
probabilities.`,
		Example: `  tuner predict --model price.model --data new.csv --keep id --out predicted.csv
  tuner predict --model digits.model --data x.npy --scores --out scores.npy`,
		Args: cli.NoArgs,
	}
	cli.FlagGroup(cmd, cli.Group{Title: "Data"}, func(f *pflag.FlagSet) {
		f.StringVarP(&model, "model", "m", "", "`file` of the model")
	})
	flags.add(cmd)
	flags.addIgnoreExtra(cmd)
	cli.FlagGroup(cmd, cli.Output, func(f *pflag.FlagSet) {
		f.StringSliceVar(&flags.options.Keep, "keep", nil, "`columns` of the data to write too, such as id")
		f.BoolVar(&scores, "scores", false, "scores or probabilities of classes alone")
	})
	to := newResult(g, cmd, "csv", "jsonl", "json", "npy")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := to.check(cmd, append(slices.Clone(flags.paths), model)...); err != nil {
			return err
		}
		if to.form == "npy" && len(flags.options.Keep) > 0 {
			return cli.Usagef("--keep: a NumPy array has one kind of values; leave it out, or write csv, jsonl or json")
		}
		file, table, src, err := applyModel(cmd.Context(), g, cmd, model, &flags, (*dataset.Table).EncodeInputs)
		if err != nil {
			return err
		}
		defer table.Close()
		if scores && file.Encoding.Task != data.Classification {
			return cli.Exit(cli.ExitInvalid, fmt.Errorf("--scores: %s predicts numbers, and only classes have scores; leave it out", model))
		}
		out := make([]float64, src.Len()*file.Model.Outputs())
		if err := file.Model.Predict(cmd.Context(), out, src); err != nil {
			return dataError(err)
		}
		p := newPredictions(file, out, table.Kept())
		p.scores = scores
		return to.write(cmd, func(w io.Writer) error {
			switch to.form {
			case "npy":
				return p.writeNPY(w)
			case "csv":
				return p.writeCSV(w)
			}
			return p.writeJSON(w, to.form)
		})
	}
	return cmd
}

// result is where a command writes its result, and in which format.
type result struct {
	path, form string
	formats    []string
}

func newResult(g *cli.Globals, cmd *cobra.Command, formats ...string) *result {
	r := &result{formats: formats}
	deviceFlag(g, cmd)
	cli.Assign(cmd.Flag("device"), cli.Output)
	cli.FlagGroup(cmd, cli.Output, func(f *pflag.FlagSet) {
		f.StringVarP(&r.path, "out", "o", "", "`file` for the result, whose ending is the format (default stdout)")
		cli.ChoiceVar(f, &r.form, "format", "f", "`format`", formats...)
	})
	return r
}

// check takes the format from the ending of the file, and refuses a file that cannot be
// written or is an input.
func (r *result) check(cmd *cobra.Command, inputs ...string) error {
	if r.path == "-" {
		r.path = ""
	}
	if r.path == "" {
		return nil
	}
	if !cmd.Flag("format").Changed {
		r.form = strings.TrimPrefix(filepath.Ext(r.path), ".")
		endings := slices.DeleteFunc(slices.Clone(r.formats), func(form string) bool { return form == "table" })
		if !slices.Contains(endings, r.form) {
			return cli.Usagef("--out %s: its ending must be one of .%s; correct it, or name the format with --format", r.path, strings.Join(endings, ", ."))
		}
	}
	return checkOut(r.path, "result", "", inputs)
}

// write calls f with stdout, or with the file, which appears when it is complete.
func (r *result) write(cmd *cobra.Command, f func(io.Writer) error) error {
	if r.path == "" {
		return f(cmd.OutOrStdout())
	}
	return atomicfile.Write(r.path, 0o644, f)
}

// applyModel reads a model and encodes data for it, with or without targets.
func applyModel(ctx context.Context, g *cli.Globals, cmd *cobra.Command, model string, data *dataFlags, encode encoder) (file *learners.File, table *dataset.Table, src data.Source, err error) {
	if file, err = loadModel(model); err != nil {
		return nil, nil, nil, err
	}
	e := *file.Encoding
	e.IgnoreExtra = e.IgnoreExtra || data.ignoreExtra
	file.Encoding, data.options.Model = &e, &e
	if table, err = data.open(ctx); err != nil {
		return nil, nil, nil, err
	}
	if g.Verbose > 0 {
		noteTable(g, cmd, table, nil)
	}
	src, err = encode(table, ctx, file.Encoding)
	var notes []string
	if err == nil {
		notes, err = table.Unseen(ctx, file.Encoding)
	}
	if err != nil {
		table.Close()
		return nil, nil, nil, refused(err)
	}
	for _, n := range notes {
		g.Note(cmd, "%s", remedies.Replace(n))
	}
	return file, table, src, nil
}

// encoder is a method of a table that makes a source of it.
type encoder func(*dataset.Table, context.Context, *data.Encoding) (data.Source, error)

type predictions struct {
	kept   []dataset.Kept
	names  []string // of the values
	e      *data.Encoding
	c      int
	out    []float64 // n×c
	values []float64 // n×columns of targets, probabilities or scores
	scores bool      // leave the class out
}

func newPredictions(f *learners.File, out []float64, kept []dataset.Kept) *predictions {
	p := &predictions{e: f.Encoding, c: f.Model.Outputs(), out: out, values: out, kept: kept}
	switch link := learners.LinkOf(f.Model); {
	case !p.classes():
		p.e.Decode(out)
		p.names = p.e.OutputNames()
	case link != learners.Expected:
		p.names = prefixed("probability ", p.e.Classes)
		p.values = link.Probabilities(out, p.c)
	default:
		p.names = prefixed("score ", p.e.Classes[len(p.e.Classes)-p.c:])
	}
	for i, name := range p.names {
		p.names[i] = p.unlike(name)
	}
	return p
}

// unlike returns a name that no kept column has.
func (p *predictions) unlike(name string) string {
	if slices.ContainsFunc(p.kept, func(k dataset.Kept) bool { return k.Name == name }) {
		return "predicted " + name
	}
	return name
}

func prefixed(prefix string, words []string) (out []string) {
	for _, w := range words {
		out = append(out, prefix+w)
	}
	return out
}

// classes tells whether the model predicts classes.
func (p *predictions) classes() bool { return p.e.Task == data.Classification }

func (p *predictions) class(i int) string { return p.e.Classes[p.e.Class(p.out[i*p.c:][:p.c])] }

// header has the names of the cells of a row.
func (p *predictions) header() (names []string) {
	for _, k := range p.kept {
		names = append(names, k.Name)
	}
	if p.classes() && !p.scores {
		names = append(names, p.unlike("class"))
	}
	return append(names, p.names...)
}

// cells are those of row i, as texts and numbers.
func (p *predictions) cells(i int) (cells []any) {
	for _, k := range p.kept {
		cells = append(cells, json.Number(k.Cells[i])) // if it is one
	}
	if p.classes() && !p.scores {
		cells = append(cells, p.class(i))
	}
	for _, v := range p.values[i*len(p.names):][:len(p.names)] {
		cells = append(cells, v)
	}
	return cells
}

func (p *predictions) writeCSV(out io.Writer) error {
	w := csv.NewWriter(out)
	row := p.header()
	err := w.Write(row)
	for i := 0; i < len(p.out)/p.c && err == nil; i++ {
		for j, cell := range p.cells(i) {
			if row[j] = fmt.Sprint(cell); j >= len(row)-len(p.names) {
				row[j] = numberText(cell.(float64))
			}
		}
		err = w.Write(row)
	}
	w.Flush()
	return errors.Join(err, w.Error())
}

// numberText is the shortest text that reads back as the number.
func numberText(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }

func (p *predictions) writeJSON(out io.Writer, form string) error {
	list := &cli.ListSink{Out: out, Format: form}
	names := p.header()
	for i := range len(p.out) / p.c {
		row := map[string]any{}
		for j, cell := range p.cells(i) {
			switch v := cell.(type) {
			case json.Number:
				if !jsonNumber.MatchString(v.String()) {
					cell = v.String()
				}
			case float64:
				if v-v != 0 { // JSON has no infinite numbers
					cell = nil
				}
			}
			row[names[j]] = cell
		}
		if err := list.Put(row); err != nil {
			return err
		}
	}
	return list.End()
}

// jsonNumber is a number that JSON writes in the same way.
var jsonNumber = regexp.MustCompile(`^-?(0|[1-9]\d*)(\.\d+)?([eE][-+]?\d+)?$`)

// writeNPY writes targets or scores as numbers n×columns, or n if there is one column,
// and classes as n numbers or texts.
func (p *predictions) writeNPY(out io.Writer) error {
	n := len(p.out) / p.c
	if p.classes() && !p.scores {
		if p.e.ClassNumbers == nil {
			texts := make([]string, n)
			for i := range texts {
				texts[i] = p.class(i)
			}
			return dataset.WriteNPYTexts(out, texts)
		}
		numbers := make([]float64, n)
		for i, class := range data.Classes(p.out, p.c) {
			numbers[i] = p.e.ClassNumbers[class]
		}
		return dataset.WriteNPY(out, numbers, n)
	}
	shape := []int{n, len(p.names)}
	if shape[1] == 1 {
		shape = shape[:1]
	}
	return dataset.WriteNPY(out, p.values, shape...)
}

func newEvaluate(g *cli.Globals) *cobra.Command {
	var data dataFlags
	var model string
	cmd := &cobra.Command{
		Use:   "evaluate --model MODEL --data FILE",
		Short: "Measure a trained model on data with targets",
		Long: `Evaluate compares the predictions of a model with the targets of the data.

For numbers it prints the root mean square error and the mean absolute error, in the unit
of the target, and R². For classes it prints the class error, the balanced accuracy and
the area under the ROC curve. If the model has probabilities, it also prints the
logarithmic loss, the Brier score and the expected calibration error.`,
		Example: "  tuner evaluate --model price.model --data test.csv",
		Args:    cli.NoArgs,
	}
	cli.FlagGroup(cmd, cli.Group{Title: "Data"}, func(f *pflag.FlagSet) {
		f.StringVarP(&model, "model", "m", "", "`file` of the model")
	})
	data.add(cmd)
	data.addTarget(cmd)
	data.addIgnoreExtra(cmd)
	data.addWeights(cmd, cli.Group{Title: "Data"})
	to := newResult(g, cmd, "table", "json", "jsonl", "csv")
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		var unknown *pflag.NotExistError
		if errors.As(err, &unknown) && slices.Contains([]string{"keep", "scores"}, unknown.GetSpecifiedName()) {
			return cli.Usagef("unknown flag --%s; evaluate writes no rows, use it with tuner predict", unknown.GetSpecifiedName())
		}
		return cli.FlagError(cmd, err)
	})
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := to.check(cmd, append(slices.Clone(data.paths), model, data.options.TargetPath)...); err != nil {
			return err
		}
		var weights []float64
		file, table, src, err := applyModel(cmd.Context(), g, cmd, model, &data, encodeLabelled(g, cmd, &weights))
		if err != nil {
			return err
		}
		defer table.Close()
		scoring := training.ScoringOf(file)
		scoring.Weights = weights
		scores, err := training.Evaluate(cmd.Context(), file.Model, file.Encoding, src, scoring)
		if err != nil {
			return dataError(err)
		}
		return to.write(cmd, func(out io.Writer) error { return writeScores(out, to.form, model, src.Len(), scores) })
	}
	return cmd
}

// writeScores writes the scores of a model on some rows.
func writeScores(out io.Writer, form, model string, rows int, scores []training.Score) error {
	switch form {
	case "table":
		w := cli.NewTable(out, "MEASURE", "VALUE")
		for _, s := range scores {
			w.Row(s.Name, scoreText(s))
		}
		return w.End()
	case "csv":
		lines := [][]string{{"measure", "value"}}
		for _, s := range scores {
			value := "" // not defined
			if s.Defined() {
				value = numberText(s.Value)
			}
			lines = append(lines, []string{s.Name, value})
		}
		return csv.NewWriter(out).WriteAll(lines)
	}
	record := map[string]any{"model": model, "rows": rows}
	for _, s := range scores {
		record[s.Name] = nil // not defined
		if s.Defined() {
			record[s.Name] = s.Value
		}
	}
	return cli.WriteJSON(out, record)
}
