package learners

import (
	"context"
	"encoding/csv"
	"fmt"
	"io"
	"strconv"

	"github.com/bkbtuner/bkb/cmd/tuner/cli"
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
--calibrate), else its score.
The data must have the columns of the training data. The target may be missing.

A NumPy array (--format npy) has the predicted numbers or classes, and with --scores the
scores or probabilities.`,
		Example: `  tuner predict --model price.model --data new.csv > predicted.csv
  tuner predict --model digits.model --data x.npy --scores -f npy > scores.npy`,
		Args: cli.NoArgs,
	}
	cli.FlagGroup(cmd, cli.Group{Title: "Data"}, func(f *pflag.FlagSet) {
		f.StringVarP(&model, "model", "m", "", "`file` of the model")
	})
	flags.add(cmd)
	flags.addIgnoreExtra(cmd)
	cmd.Flags().BoolVar(&scores, "scores", false, "scores or probabilities of classes alone")
	deviceFlag(g, cmd)
	form := cli.FormatFlag(cmd, "csv", "jsonl", "json", "npy")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		file, src, closeTable, err := applyModel(cmd.Context(), g, cmd, model, &flags, (*dataset.Table).EncodeInputs)
		if err != nil {
			return err
		}
		defer closeTable()
		if scores && file.Encoding.Task != data.Classification {
			return cli.Exit(cli.ExitInvalid, fmt.Errorf("--scores: %s predicts numbers, and only classes have scores; leave it out", model))
		}
		out := make([]float64, src.Len()*file.Model.Outputs())
		if err := file.Model.Predict(cmd.Context(), out, src); err != nil {
			return dataError(err)
		}
		p := newPredictions(file, out)
		p.scores = scores
		switch {
		case *form == "npy":
			return p.writeNPY(cmd.OutOrStdout())
		case *form == "csv":
			return p.writeCSV(cmd.OutOrStdout())
		}
		return p.writeJSON(cmd.OutOrStdout())
	}
	return cmd
}

// applyModel reads a model and encodes data for it, with or without targets.
func applyModel(ctx context.Context, g *cli.Globals, cmd *cobra.Command, model string, data *dataFlags, encode encoder) (*learners.File, data.Source, func(), error) {
	file, err := loadModel(model)
	if err != nil {
		return nil, nil, nil, err
	}
	e := *file.Encoding
	e.IgnoreExtra = e.IgnoreExtra || data.ignoreExtra
	file.Encoding, data.options.Model = &e, &e
	table, err := data.open(ctx)
	if err != nil {
		return nil, nil, nil, err
	}
	if g.Verbose > 0 {
		noteTable(g, cmd, table, nil)
	}
	src, err := encode(table, ctx, file.Encoding)
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
	return file, src, func() { table.Close() }, nil
}

// encoder is a method of a table that makes a source of it.
type encoder func(*dataset.Table, context.Context, *data.Encoding) (data.Source, error)

type predictions struct {
	names  []string
	e      *data.Encoding
	c      int
	out    []float64 // n×c
	values []float64 // n×columns of targets, probabilities or scores
	scores bool      // leave the class out
}

func newPredictions(f *learners.File, out []float64) *predictions {
	p := &predictions{e: f.Encoding, c: f.Model.Outputs(), out: out}
	if p.e.Task != data.Classification {
		p.e.Decode(out)
		p.names, p.values = p.e.OutputNames(), out
		return p
	}
	if link := learners.LinkOf(f.Model); link != learners.Expected {
		for _, class := range p.e.Classes {
			p.names = append(p.names, "probability "+class)
		}
		p.values = link.Probabilities(out, p.c)
		return p
	}
	p.values = out
	for _, class := range p.e.Classes[len(p.e.Classes)-p.c:] {
		p.names = append(p.names, "score "+class)
	}
	return p
}

// classes tells whether the model predicts classes.
func (p *predictions) classes() bool { return p.e.Task == data.Classification }

func (p *predictions) class(i int) string { return p.e.Classes[p.e.Class(p.out[i*p.c:][:p.c])] }

func (p *predictions) row(i int) []float64 { return p.values[i*len(p.names):][:len(p.names)] }

func (p *predictions) writeCSV(out io.Writer) error {
	w := csv.NewWriter(out)
	var cells []string
	named := p.classes() && !p.scores
	if named {
		cells = append(cells, "class")
	}
	if err := w.Write(append(cells, p.names...)); err != nil {
		return err
	}
	for i := range len(p.out) / p.c {
		cells = cells[:0]
		if named {
			cells = append(cells, p.class(i))
		}
		for _, v := range p.row(i) {
			cells = append(cells, strconv.FormatFloat(v, 'g', -1, 64))
		}
		if err := w.Write(cells); err != nil {
			return err
		}
	}
	w.Flush()
	return w.Error()
}

func (p *predictions) writeJSON(out io.Writer) error {
	for i := range len(p.out) / p.c {
		row := map[string]any{}
		if p.classes() && !p.scores {
			row["class"] = p.class(i)
		}
		for j, v := range p.row(i) {
			row[p.names[j]] = nil // JSON has no infinite numbers
			if v-v == 0 {
				row[p.names[j]] = v
			}
		}
		if err := cli.WriteJSON(out, row); err != nil {
			return err
		}
	}
	return nil
}

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
		for i := range numbers {
			numbers[i] = p.e.ClassNumbers[p.e.Class(p.out[i*p.c:][:p.c])]
		}
		return dataset.WriteNPY(out, numbers, n)
	}
	if len(p.names) == 1 {
		return dataset.WriteNPY(out, p.values, n)
	}
	return dataset.WriteNPY(out, p.values, n, len(p.names))
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
	deviceFlag(g, cmd)
	form := cli.FormatFlag(cmd, "table", "json", "jsonl")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		var weights []float64
		file, src, closeTable, err := applyModel(cmd.Context(), g, cmd, model, &data, encodeLabelled(g, cmd, &weights))
		if err != nil {
			return err
		}
		defer closeTable()
		scoring := training.ScoringOf(file)
		scoring.Weights = weights
		scores, err := training.Evaluate(cmd.Context(), file.Model, file.Encoding, src, scoring)
		if err != nil {
			return dataError(err)
		}
		if *form != "table" {
			record := map[string]any{"model": model, "rows": src.Len()}
			for _, s := range scores {
				record[s.Name] = nil // not defined
				if s.Defined() {
					record[s.Name] = s.Value
				}
			}
			return cli.WriteJSON(cmd.OutOrStdout(), record)
		}
		w := cli.NewTable(cmd.OutOrStdout(), "MEASURE", "VALUE")
		for _, s := range scores {
			w.Row(s.Name, scoreText(s))
		}
		return w.End()
	}
	return cmd
}
