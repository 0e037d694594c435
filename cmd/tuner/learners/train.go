package learners

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/bkbtuner/bkb/cmd/tuner/cli"
	"github.com/bkbtuner/bkb/internal/atomicfile"
	"github.com/bkbtuner/bkb/learners"
	"github.com/bkbtuner/bkb/learners/data"
	"github.com/bkbtuner/bkb/learners/training"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

func newTrain(g *cli.Globals) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "train",
		Short: "Train a kernel learner on a file of data",
		Long: `Train fits one of the bundled learners to a file of data and writes the model to a
file. The commands predict and evaluate use the model.

A first fit leaves out the validation rows and measures the error on them. The last one has
all rows but the test rows. Where steps regularise, as in sgdrf, it ends at the step with the
least validation error. Elsewhere fits with several λ are compared, for up to 100,000 rows, unless
--lambda is given. Ctrl-C ends the fit and keeps the best model so far.
For kernels and losses see tuner help hyper-parameters.`,
		Example: "  tuner train falkon --data housing.csv --target price --out housing.model",
		Args:    cli.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	page := new(trainer)
	page.addWeights(cmd)
	page.addValidation(cmd)
	for _, a := range training.Algorithms() {
		cmd.AddCommand(newTrainAlgorithm(g, a))
	}
	return cmd
}

type trainer struct {
	job
	options    learners.Options
	settings   string
	regularity float64
}

func newTrainAlgorithm(g *cli.Globals, a training.Algorithm) *cobra.Command {
	t := trainer{job: job{algorithm: a}}
	cmd := &cobra.Command{
		Use:     a.Name + " --data FILE --out MODEL",
		Short:   a.Summary,
		Long:    a.About,
		Example: fmt.Sprintf("  tuner train %s --data train.csv --target price --out price.model", a.Name),
		Args:    cli.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return t.run(cmd.Context(), g, cmd) },
	}
	addParameters(cmd, a)
	if a.HasTheory() {
		cmd.Example += fmt.Sprintf("\n  tuner train %s --data train.csv --settings theory --out price.model", a.Name)
		cli.FlagGroup(cmd, cli.Group{Title: "Hyper-parameters"}, func(f *pflag.FlagSet) {
			cli.ChoiceVar(f, &t.settings, "settings", "", "`settings` of what is not given", "default", "theory")
			f.Float64Var(&t.regularity, "regularity", 0.5, "`r` of theory, the smoothness of the target, at most 1 (0.5 assumes least)")
		})
	}
	t.data.add(cmd)
	t.data.addTarget(cmd)
	t.addWeights(cmd)
	t.encoding.add(cmd)
	t.addValidation(cmd)
	cli.Register(cmd, "measure", cli.Words(learners.MeasureNames()...))
	cli.FlagGroup(cmd, cli.Output, func(f *pflag.FlagSet) {
		f.StringVarP(&t.out, "out", "o", "", "`file` for the model")
		f.IntVar(&t.options.Workers, "workers", 0, "number of threads (default one per processor)")
	})
	deviceFlag(g, cmd)
	cli.Assign(cmd.Flag("device"), cli.Output)
	t.format = cli.FormatFlag(cmd, "table", "json", "jsonl")
	cli.Assign(cmd.Flag("format"), cli.Output)
	return cmd
}

// addValidation adds the flags that are on the page of train.
func (t *trainer) addValidation(cmd *cobra.Command) {
	cli.FlagGroup(cmd, cli.Group{Title: "Validation", See: "tuner train"}, func(f *pflag.FlagSet) {
		f.StringVar(&t.measure, "measure", "", "`error` to validate by (default rmse, or log-loss of probabilities)")
		f.Float64Var(&t.split.Validation, "validation", 0.1, "`share` of rows for validation")
		f.Float64Var(&t.split.Test, "test", 0, "`share` of rows to test the result")
		f.IntVar(&t.options.Patience, "patience", 0, "steps without improvement before the end, 0 for no limit")
		f.Uint64Var(&t.split.Seed, "seed", 1, "seed of random numbers")
	})
	t.addCalibrate(cmd)
}

// parametersPage has the hyper-parameters that several algorithms have.
const parametersPage = "tuner help hyper-parameters"

// groupOf is the group of a hyper-parameter.
func groupOf(name string) cli.Group {
	switch name {
	case "kernel", "length-scale", "relevance", "metric", "degree", "offset":
		return cli.Group{Title: "Kernel", See: parametersPage}
	case "loss", "delta", "quantile":
		return cli.Group{Title: "Loss", See: parametersPage}
	case "solver", "tolerance", "factorization", "epsilon", "precision", "distances", "step-decay", "averaging", "sampling":
		return cli.Group{Title: "Iterations and numerics", See: parametersPage}
	}
	return cli.Group{Title: "Hyper-parameters"}
}

func newParametersTopic() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "hyper-parameters",
		Short: "Hyper-parameters that several algorithms have",
		Long: `These are flags of tuner train for the algorithms that have them. The page of an algorithm
has the others.`,
		Example: "  tuner train falkon --data homes.csv --kernel matern32 --out homes.model",
	}
	for _, a := range training.Algorithms() {
		a.Parameters = slices.DeleteFunc(slices.Clone(a.Parameters), func(p training.Parameter) bool {
			return groupOf(p.Name).See == "" || cmd.Flags().Lookup(p.Name) != nil
		})
		addParameters(cmd, a)
	}
	return cmd
}

// addParameters adds the hyper-parameters of an algorithm.
func addParameters(cmd *cobra.Command, a training.Algorithm) {
	for _, p := range a.Parameters {
		cli.FlagGroup(cmd, groupOf(p.Name), func(f *pflag.FlagSet) { addParameter(f, p) })
		if len(p.Choices) > 0 {
			cli.Register(cmd, p.Name, cli.Words(p.Choices...))
		}
	}
}

// addParameter adds the flag of a hyper-parameter. Its value is a text that the algorithm reads.
func addParameter(f *pflag.FlagSet, p training.Parameter) {
	usage, kind := strings.TrimPrefix(p.Doc, "the "), map[training.Kind]string{training.Real: "number", training.Count: "count", training.Choice: "name", training.Lengths: "numbers"}[p.Kind]
	if len(p.Choices) > 0 {
		usage += ", one of " + strings.Join(p.Choices, ", ")
	}
	f.Var(&parameterValue{p.Default, kind}, p.Name, usage)
	f.Lookup(p.Name).DefValue = p.Default
	if p.Auto != "" && p.Default == training.Auto {
		f.Lookup(p.Name).DefValue = training.Auto + ", " + p.Auto
	}
}

type parameterValue struct{ text, kind string }

func (v *parameterValue) String() string     { return v.text }
func (v *parameterValue) Type() string       { return v.kind }
func (v *parameterValue) Set(s string) error { v.text = s; return nil }

func (t *trainer) values(cmd *cobra.Command) training.Values {
	v := training.Values{}
	for _, p := range t.algorithm.Parameters {
		if f := cmd.Flag(p.Name); f.Changed {
			v[p.Name] = f.Value.String()
		}
	}
	return v
}

// check refuses flags that are wrong for all data.
func (t *trainer) check(cmd *cobra.Command) error {
	if t.out == "" {
		return cli.Usagef("there is no file for the model; name it with --out")
	}
	if err := t.job.check(); err != nil {
		return err
	}
	switch chunks := t.data.options.ChunkFile; {
	case chunks != "" && filepath.Clean(chunks) == filepath.Clean(t.out):
		return cli.Usagef("--out %s: must be another file than --chunk-file; name another one", t.out)
	case t.options.Workers < 0:
		return cli.Usagef("--workers %d: must be at least 0, and 0 means one per processor", t.options.Workers)
	case t.options.Patience < 0:
		return cli.Usagef("--patience %d: must be at least 0, and 0 means no limit", t.options.Patience)
	case cmd.Flags().Changed("regularity") && t.settings != "theory":
		return cli.Usagef("--regularity %v: has an effect with --settings theory only; add that", t.regularity)
	case t.settings == "theory" && !(t.regularity > 0 && t.regularity <= 1):
		return cli.Usagef("--regularity %v: must be above 0 and at most 1; use 0.5 if nothing is known", t.regularity)
	case t.calibrate && t.split.Validation == 0:
		return cli.Usagef("--calibrate: there are no validation rows; give --validation a share above 0")
	}
	return dataError(t.algorithm.Check(t.values(cmd)))
}

func (t *trainer) run(ctx context.Context, g *cli.Globals, cmd *cobra.Command) error {
	if err := t.check(cmd); err != nil {
		return err
	}
	table, data, err := t.prepare(ctx, g, cmd)
	if err != nil {
		return err
	}
	defer table.Close()
	return t.fit(ctx, g, cmd, data)
}

// fit fits, writes and measures the model.
func (t *trainer) fit(ctx context.Context, g *cli.Globals, cmd *cobra.Command, d *training.Data) error {
	if t.calibrate && len(d.Encoding.Classes) == 0 {
		return cli.Usagef("--calibrate: the target is a number, and only classes have probabilities; leave it out")
	}
	o := t.options
	o.Seed = t.split.Seed
	progress := newFitProgress(cli.NewStatusLine(g, cmd), t.algorithm.Name)
	o.Progress = progress.report
	run := training.Run{Values: t.values(cmd), Measure: t.measure, Classes: t.classes, Options: o}
	if t.settings == "theory" {
		run.Regularity = t.regularity
	}
	fitted, fitErr := t.algorithm.Train(ctx, d, run)
	progress.End()
	interrupted := errors.Is(fitErr, context.Canceled) && ctx.Err() != nil
	var weights *training.ClassError
	switch {
	case errors.As(fitErr, &weights):
		return cli.Usagef("--class-weight: %w", fitErr)
	case fitted == nil || fitErr != nil && !interrupted:
		return dataError(fitErr)
	}
	for _, n := range fitted.Notes {
		g.Note(cmd, "%s: %s", t.algorithm.Name, n)
	}
	r := trained{
		Algorithm: t.algorithm.Name, Model: t.out, Inputs: d.Train.Dim(), Outputs: d.Train.Outputs(),
		Report: learners.Report{
			Rows: fitted.Rows, Iterations: fitted.Iterations, Best: fitted.Step, Seconds: time.Since(progress.began).Seconds(),
			Interrupted: interrupted, Notes: fitted.Notes,
		},
	}
	if d.Validation != nil {
		r.Measure, r.ValidationRows = fitted.Measure, d.Validation.Len()
		if e := fitted.Error; e-e == 0 {
			r.ValidationError = &e
		}
	}
	model := fitted.Model
	if e, ok := model.(*learners.Expansion); ok {
		r.Centers = e.Centers().Len()
	}
	if l := fitted.Problem.Learned; l != nil {
		r.Idle = l.Idle(d.Encoding.InputNames())
	}
	r.Parameters = t.algorithm.Used(fitted.Values, fitted.Problem, model)
	if g.Verbose > 0 {
		var words []string // in the order of the help
		for _, p := range t.algorithm.Parameters {
			words = append(words, p.Name+" "+r.Parameters[p.Name])
		}
		g.Note(cmd, "%s: %s", t.algorithm.Name, strings.Join(words, ", "))
	}
	judged := fitted.Judged
	if t.calibrate && !interrupted {
		for _, m := range []*learners.Model{&model, &judged} {
			calibrated, err := learners.Calibrate(ctx, *m, fitted.Judged, d.Validation, d.ValidationWeights)
			if err != nil {
				return dataError(err)
			}
			*m = calibrated
		}
	}
	params, err := json.Marshal(r.Parameters)
	if err != nil {
		return err
	}
	f := learners.File{Algorithm: t.algorithm.Name, Params: params, Seed: t.split.Seed, Encoding: d.Encoding, Report: &r.Report, Model: model}
	if err := f.Save(t.out); err != nil {
		return err
	}
	if interrupted {
		return errors.Join(t.write(cmd, r), cli.Exit(cli.ExitInterrupted, fmt.Errorf("interrupted; the best model so far is in %s", t.out)))
	}
	// The model has seen the validation rows, and judged has not.
	s := t.algorithm.Scoring(fitted.Values, fitted.Problem)
	for _, part := range []struct {
		rows    data.Source
		weights []float64
		model   learners.Model
		to      *[]training.Score
	}{{d.Validation, d.ValidationWeights, judged, &r.Validation}, {d.Test, d.TestWeights, model, &r.Test}} {
		if part.rows == nil {
			continue
		}
		s.Weights = part.weights
		if *part.to, err = training.Evaluate(ctx, part.model, d.Encoding, part.rows, s); err != nil {
			return err
		}
	}
	return t.write(cmd, r)
}

// trained is the result of a training.
type trained struct {
	Algorithm string `json:"algorithm"`
	Model     string `json:"model"`
	learners.Report
	Inputs     int             `json:"inputs"`
	Outputs    int             `json:"outputs"`
	Centers    int             `json:"centers,omitempty"` // in the model
	Parameters training.Values `json:"parameters"`        // as the fit had them
	// Idle are the inputs whose learned length scales are so long that they have little effect.
	Idle       []string         `json:"inputs_without_effect,omitempty"`
	Validation []training.Score `json:"validation,omitempty"`
	Test       []training.Score `json:"test,omitempty"`
}

func (t *trainer) write(cmd *cobra.Command, r trained) error {
	out := cmd.OutOrStdout()
	if *t.format != "table" {
		return cli.WriteJSON(out, r)
	}
	w := cli.NewTable(out, "ROWS", "MEASURE", "VALUE")
	for _, part := range []struct {
		name   string
		scores []training.Score
	}{{"validation", r.Validation}, {"test", r.Test}} {
		for _, s := range part.scores {
			w.Row(part.name, s.Name, scoreText(s))
		}
	}
	if r.Interrupted && r.ValidationError != nil {
		w.Row("validation", r.Measure, fmt.Sprintf("%.6g, the best so far, at step %d", *r.ValidationError, r.Best))
	} else if r.Validation == nil && r.Test == nil {
		w.Row("training", "rows", fmt.Sprint(r.Rows))
	}
	return w.End()
}

func scoreText(s training.Score) string {
	if s.Defined() {
		return fmt.Sprintf("%.6g", s.Value)
	}
	return "undefined: " + s.Why()
}

func loadModel(path string) (*learners.File, error) {
	if path == "" {
		return nil, cli.Usagef("there is no model; name its file with --model")
	}
	f, err := learners.Load(path, nil)
	var format *learners.FormatError
	var version *learners.VersionError
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil, cli.Exit(cli.ExitNotFound, fmt.Errorf("there is no model %s; make one with tuner train", path))
	case errors.As(err, &format), errors.As(err, &version):
		return nil, cli.Exit(cli.ExitDamaged, err)
	case err != nil:
		return nil, err
	case f.Encoding == nil:
		return nil, cli.Exit(cli.ExitDamaged, fmt.Errorf("%s: the model has no encoding of data; train it again", path))
	}
	return f, nil
}

func algorithms(*cobra.Command, []string, string) (out []string, _ cobra.ShellCompDirective) {
	for _, a := range training.Algorithms() {
		out = append(out, cobra.CompletionWithDesc(a.Name, a.Summary))
	}
	return out, cobra.ShellCompDirectiveNoFileComp
}

func kernelNames() []string {
	for _, p := range training.Algorithms()[0].Parameters {
		if p.Name == "kernel" {
			return p.Choices
		}
	}
	return nil
}

// hyperParameters completes the hyper-parameters of the algorithm that args name, as
// lambda=, and the values of choices, as kernel=gaussian.
func hyperParameters(_ *cobra.Command, args []string, toComplete string) ([]string, cobra.ShellCompDirective) {
	var names, values []string
	if len(args) > 0 {
		a, _ := training.Find(args[0])
		for _, p := range a.Parameters {
			names = append(names, p.Name)
			for _, choice := range p.Choices {
				values = append(values, p.Name+"="+choice)
			}
		}
	}
	return cli.Assignments(names, values, nil, toComplete)
}

type fitProgress struct {
	*cli.StatusLine
	name  string
	began time.Time
	last  learners.Progress
	best  float64 // validation error
}

func newFitProgress(s *cli.StatusLine, name string) *fitProgress {
	p := &fitProgress{StatusLine: s, name: name, began: time.Now(), best: math.NaN()}
	p.Draw(true, func() string { return name + ": starting" })
	return p
}

func (p *fitProgress) report(at learners.Progress) error {
	p.last = at
	if at.Best {
		p.best = at.ValidationError
	}
	p.Draw(at.Iteration == at.Iterations, func() string { return p.line(time.Since(p.began)) })
	return nil
}

// line is the text of the line after some time. A narrow terminal cuts off its end, so
// the important parts come first.
func (p *fitProgress) line(elapsed time.Duration) string {
	var b strings.Builder
	at := p.last
	fmt.Fprintf(&b, "%s  %d/%d  %s", p.name, at.Iteration, at.Iterations, elapsed.Round(time.Second))
	if left := at.Iterations - at.Iteration; at.Iteration > 0 && left > 0 {
		each := elapsed / time.Duration(at.Iteration)
		b.WriteString(", about " + (each * time.Duration(left)).Round(time.Second).String() + " left")
	}
	if s := elapsed.Seconds(); s > 0 && at.Rows > 0 {
		fmt.Fprintf(&b, "  %.3g rows/s", float64(at.Rows)/s)
	}
	p.number(&b, "validation", at.ValidationError)
	if !math.IsNaN(at.ValidationError) {
		fmt.Fprintf(&b, " (best %.4g)", p.best)
	}
	p.number(&b, "residual", at.Residual)
	p.number(&b, "objective", at.Objective)
	return b.String()
}

// number adds a number with its name, if there is one.
func (p *fitProgress) number(b *strings.Builder, name string, v float64) {
	if !math.IsNaN(v) {
		fmt.Fprintf(b, "  %s %.4g", name, v)
	}
}

// checkOut refuses a file for a model or another result that cannot be written, or that would
// replace an input, a device, or a file that does not start with magic. It runs before any work.
func checkOut(path, what, magic string, inputs []string) error {
	folder := filepath.Dir(path)
	if !cli.IsDir(folder) {
		return cli.Exit(cli.ExitNotFound, fmt.Errorf("there is no directory %s for the %s %s; make it first", folder, what, filepath.Base(path)))
	}
	if reason, err := atomicfile.Replaceable(path, what, magic, inputs); err != nil {
		return err
	} else if reason != "" {
		return cli.Usagef("--out %s: %s", path, reason)
	}
	tmp, err := os.CreateTemp(folder, filepath.Base(path)+".*.tmp")
	if err != nil {
		err = fmt.Errorf("--out %s cannot be written: %w", path, err)
		if errors.Is(err, fs.ErrPermission) {
			return cli.Exit(cli.ExitDenied, err)
		}
		return err
	}
	return errors.Join(tmp.Close(), os.Remove(tmp.Name()))
}
