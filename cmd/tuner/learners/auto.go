// Package learners has the commands that train, tune and use the bundled kernel learners on files of data.
package learners

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/bkbtuner/bkb/cmd/tuner/cli"
	"github.com/bkbtuner/bkb/cmd/tuner/diagnose"
	"github.com/bkbtuner/bkb/cmd/tuner/record"
	"github.com/bkbtuner/bkb/cmd/tuner/studies"
	"github.com/bkbtuner/bkb/cmd/tuner/trials"
	"github.com/bkbtuner/bkb/learners"
	"github.com/bkbtuner/bkb/learners/data"
	"github.com/bkbtuner/bkb/learners/training"
	"github.com/bkbtuner/bkb/store/postgres"
	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/autotune"
	"github.com/bkbtuner/bkb/tuner/propose"
	"github.com/bkbtuner/bkb/tuner/prune"
	"github.com/bkbtuner/bkb/tuner/runner"
	"github.com/bkbtuner/bkb/tuner/space"
	"github.com/bkbtuner/bkb/tuner/study"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

const defaultAutoTrials = 60

func newAuto(g *cli.Globals) *cobra.Command {
	var a autoRun
	cmd := &cobra.Command{
		Use:   "auto [ALGORITHM] --data FILE",
		Short: "Tune a kernel learner on a file of data",
		Long: `Auto tunes the hyper-parameters of a bundled learner on a file of data, and writes the
best model to a file. ALGORITHM is one of those of tuner train. Without it falkon,
log-falkon, krr and sgdrf race on the validation rows, and the winner is tuned.

Trials are compared on validation rows. Below 2000 rows falkon and krr leave out each
row, others use five folds of few centres. A regression of up to 10,000 rows without
folds averages the best trials. Run again after Ctrl-C, it goes on.`,
		Example: `  tuner auto --demo
  tuner auto --data housing.csv --target price
  tuner auto falkon --data housing.csv --target price --trials 40`,
		Args: cli.Between(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if a.demo {
				return a.runDemo(g, cmd, args)
			}
			return a.run(cmd.Context(), g, cmd, strings.Join(args, ""))
		},
	}
	a.flags(g, cmd)
	cmd.ValidArgsFunction = cli.Args(algorithms)
	return cmd
}

type autoRun struct {
	job
	set, ranges      []string
	folds, trials    int
	workers, threads int
	budget, lease    time.Duration
	study, from      string
	png, logDir      string
	proposer, pruner string
	demo             bool
}

func (a *autoRun) flags(g *cli.Globals, cmd *cobra.Command) {
	a.data.add(cmd)
	a.data.addTarget(cmd)
	cli.FlagGroup(cmd, cli.Group{Title: "Data"}, func(f *pflag.FlagSet) {
		f.StringVar(&a.measure, "measure", "", "`error` to minimize (default rmse or log-loss)")
		f.Float64Var(&a.split.Validation, "validation", 0.2, "`share` of rows for comparing trials")
		f.IntVar(&a.folds, "folds", 0, "number of `folds`, 1 for the validation rows alone")
		f.Float64Var(&a.split.Test, "test", 0.2, "`share` of rows to test the result")
		f.Uint64Var(&a.split.Seed, "seed", 1, "seed of random numbers")
	})
	a.addWeights(cmd)
	a.addCalibrate(cmd)
	cli.FlagGroup(cmd, cli.Group{Title: "Study"}, func(f *pflag.FlagSet) {
		f.IntVar(&a.trials, "trials", defaultAutoTrials, "number of trials, 0 for no limit")
		f.DurationVar(&a.budget, "budget", 0, "time of trials per worker, such as 10m")
		f.StringVar(&a.study, "study", "", "`name` (default ALGORITHM-FILE)")
		f.StringVar(&a.from, "from", "", "finished `study` of the same data to continue")
		f.StringVar(&a.proposer, "proposer", "", "`proposer`, bkb (default), sobol or random")
		f.StringVar(&a.pruner, "pruner", "", "`pruner`, median (default), asha or none")
		f.StringArrayVar(&a.set, "set", nil, "`name=value` of a hyper-parameter (repeatable)")
		f.StringArrayVar(&a.ranges, "range", nil, "`name=a..b` to search in (repeatable)")
	})
	cli.FlagGroup(cmd, cli.Group{Title: "Run", See: "tuner run"}, func(f *pflag.FlagSet) {
		f.DurationVar(&a.lease, "lease", runner.DefaultLease, "time without a heartbeat")
		g.ProposeFlag(f)
	})
	cli.FlagGroup(cmd, cli.Group{Title: "Run"}, func(f *pflag.FlagSet) {
		f.IntVarP(&a.workers, "workers", "j", 2, "number of trials at a time")
		f.IntVar(&a.threads, "threads", 0, "threads of each trial (default its share)")
		f.StringVar(&a.logDir, "log-dir", "", "`directory` of logs (default STUDY.logs)")
		f.BoolVar(&a.demo, "demo", false, "FALKON on generated data")
		f.StringVarP(&a.out, "out", "o", "", "`file` for the model (default STUDY.model)")
		f.StringVar(&a.png, "png", "", "`directory` for plots of the trials")
	})
	a.encoding.add(cmd)
	deviceFlag(g, cmd)
	cli.Assign(cmd.Flag("device"), cli.Group{Title: "Run"})
	a.format = cli.FormatFlag(cmd, "table", "json")
	cli.Assign(cmd.Flag("format"), cli.Group{Title: "Run"})
	cli.Register(cmd, "measure", cli.Words(learners.MeasureNames()...))
	cli.Register(cmd, "set", hyperParameters)
	cli.Register(cmd, "range", hyperParameters)
	cli.Register(cmd, "log-dir", cli.Folders)
	cli.Register(cmd, "png", cli.Folders)
	cli.Register(cmd, "study", g.Studies)
	cli.Register(cmd, "from", g.Studies)
	cli.Register(cmd, "proposer", cli.Component(propose.Names, propose.Options))
	cli.Register(cmd, "pruner", cli.Component(prune.Names, prune.Options))
}

func (a *autoRun) run(ctx context.Context, g *cli.Globals, cmd *cobra.Command, algorithm string) error {
	cli.OutliveReaders(cmd)
	switch {
	case algorithm == "" && len(a.data.paths) == 0:
		return cli.Usagef("there are no data; write tuner auto --data FILE, or try tuner auto --demo")
	case algorithm == "" && a.from != "":
		return cli.Usagef("--from %s: name the algorithm of this study, as in tuner auto falkon", a.from)
	}
	able := training.Racers()
	if algorithm != "" {
		only, err := training.Find(algorithm)
		if err != nil {
			return cli.Exit(cli.ExitInvalid, err)
		}
		able = []training.Algorithm{only}
	}
	given := *a
	complete := func(with training.Algorithm) (autotune.Options, error) {
		a.algorithm, a.study, a.out = with, given.study, given.out
		return a.complete(cmd)
	}
	var o autotune.Options
	var enter []training.Algorithm // those that the flags suit
	var err error
	for _, with := range able {
		if suited, refused := complete(with); refused == nil {
			o, enter = suited, append(enter, with)
		} else {
			err = cmp.Or(err, refused)
		}
	}
	if len(enter) == 0 {
		return err
	}
	table, data, err := a.prepare(ctx, g, cmd)
	if err != nil {
		return err
	}
	defer table.Close()
	if algorithm == "" {
		winner, err := a.race(ctx, g, cmd, data, o, enter)
		if err != nil {
			return err
		}
		if o, err = complete(winner); err != nil {
			return err
		}
	}
	tn, err := a.tuning(ctx, data, o)
	if err != nil {
		return err
	}
	return g.With(cmd, cli.MayCreate, func(ctx context.Context, svc tuner.Service) error {
		return a.tune(ctx, g, cmd, svc, tn)
	})
}

// race returns the learner to tune.
func (a *autoRun) race(ctx context.Context, g *cli.Globals, cmd *cobra.Command, d *training.Data, o autotune.Options, enter []training.Algorithm) (training.Algorithm, error) {
	ranked, measure, err := training.Race(ctx, d, training.Run{
		Values: o.Fixed, Measure: o.Measure, Classes: o.ClassWeights, Options: learners.Options{Seed: o.Seed, Workers: a.threads * a.workers},
	}, enter)
	if weights := (*training.ClassError)(nil); errors.As(err, &weights) {
		return training.Algorithm{}, cli.Usagef("--class-weight: %w", err)
	} else if err != nil {
		return training.Algorithm{}, dataError(err)
	}
	var errs []string
	for _, c := range ranked {
		errs = append(errs, fmt.Sprintf("%s %.4g", c.Name, c.Error))
	}
	g.Note(cmd, "Race on %d validation rows, by %s: %s. Tuning %s.", d.Validation.Len(), measure, strings.Join(errs, ", "), ranked[0].Name)
	return training.Find(ranked[0].Name)
}

// complete checks the flags and derives defaults from other flags.
func (a *autoRun) complete(cmd *cobra.Command) (o autotune.Options, err error) {
	switch {
	case len(a.data.paths) == 0:
		return o, errNoData
	case a.trials < 0 || a.budget < 0:
		return o, cli.Usagef("--trials %d, --budget %s: must not be negative", a.trials, a.budget)
	case a.folds < 0:
		return o, cli.Usagef("--folds %d: must be at least 1, or 0 for the default", a.folds)
	case a.workers < 1 || a.threads < 0:
		return o, cli.Usagef("--workers %d, --threads %d: must be at least 1 and 0", a.workers, a.threads)
	case !(a.split.Validation > 0):
		return o, cli.Usagef("--validation %v: must be above 0, because trials are compared on these rows", a.split.Validation)
	}
	if a.budget > 0 && !cmd.Flags().Changed("trials") {
		a.trials = 0
	}
	if a.threads == 0 {
		a.threads = max((runtime.NumCPU()+a.workers-1)/a.workers, 1)
	}
	switch {
	case a.study == "" && a.from != "":
		a.study = trials.Successor(a.from)
	case a.study == "":
		a.study = studyNameOf(a.algorithm.Name, a.data.paths[0])
	case a.study == a.from:
		return o, cli.Usagef("--from %s: must be another study than --study; leave --study out, or name a new one", a.from)
	}
	if err := cli.CheckName(a.study); err != nil {
		return o, err
	}
	if a.out == "" {
		a.out = a.study + ".model"
	}
	if err := a.check(); err != nil {
		return o, err
	}
	if a.png != "" { // before time is spent
		if err := os.MkdirAll(a.png, 0o755); err != nil {
			return o, err
		}
	}
	o = autotune.Options{
		Measure: a.measure, Folds: a.folds, ClassWeights: a.classes, Calibrate: a.calibrate, Scores: !a.calibrate && cmd.Flags().Changed("calibrate"),
		Seed: a.split.Seed, Workers: a.threads, Parallel: a.workers,
	}
	return o, a.parameters(&o)
}

func (a *autoRun) parameters(o *autotune.Options) error {
	o.Fixed, o.Ranges = training.Values{}, map[string]autotune.Range{}
	for _, pair := range a.set {
		name, value, ok := strings.Cut(pair, "=")
		if !ok || name == "" {
			return cli.Usagef("--set: %q is not name=value", pair)
		}
		o.Fixed[name] = value
	}
	if err := a.algorithm.Check(o.Fixed); err != nil {
		return dataError(err)
	}
	for _, text := range a.ranges {
		name, r, err := autotune.ParseRange(text)
		if err != nil {
			return cli.Usagef("--range: %w", err)
		}
		if _, twice := o.Ranges[name]; twice {
			return cli.Usagef("--range: %s is given twice; leave one out", name)
		}
		o.Ranges[name] = r
	}
	return refused(autotune.CheckRanges(a.algorithm, o.Fixed, o.Ranges))
}

// studyNameOf makes the name of a study from those of algorithm and file.
func studyNameOf(algorithm, path string) string {
	base, _, _ := strings.Cut(filepath.Base(path), ".")
	base = strings.Trim(regexp.MustCompile(`[^a-z0-9_-]`).ReplaceAllString(strings.ToLower(base), "-"), "-")
	if base == "" {
		return algorithm
	}
	return fmt.Sprintf("%s-%.40s", algorithm, base)
}

func (a *autoRun) tuning(ctx context.Context, data *training.Data, o autotune.Options) (*autotune.Tuning, error) {
	known, err := data.Known()
	if err != nil {
		return nil, err
	}
	if o.Folds == 0 {
		o.Folds = autotune.DefaultFolds(a.algorithm, o.Fixed, known.Len())
	} else if o.Folds > known.Len() {
		return nil, cli.Usagef("--folds %d: must be at most %d, the number of rows that are not for testing", o.Folds, known.Len())
	}
	tn, err := autotune.New(ctx, a.algorithm, data, o)
	if option := (*autotune.OptionError)(nil); errors.As(err, &option) {
		return nil, cli.Usagef("--%s: %w", option.Option, reworded(option.Err))
	}
	return tn, refused(err)
}

// spec is the study that the flags describe.
func (a *autoRun) spec() (study.Spec, error) {
	s := study.Spec{
		MaxTrials: a.trials, MaxCost: a.budget.Seconds() * float64(a.workers), Lease: a.lease,
		MaxRetries: study.DefaultMaxRetries, Seed: a.split.Seed,
	}
	var err error
	if s.Proposer, err = studies.ParseComponent("proposer", a.proposer); err == nil {
		s.Pruner, err = studies.ParseComponent("pruner", a.pruner)
	}
	return s, err
}

// tune runs the trials of the study and writes the model once it has finished.
func (a *autoRun) tune(ctx context.Context, g *cli.Globals, cmd *cobra.Command, svc tuner.Service, tn *autotune.Tuning) error {
	spec, err := a.spec()
	if err != nil {
		return err
	}
	view, made, err := a.begin(ctx, g, cmd, svc, tn, spec)
	mismatch := (*autotune.MismatchError)(nil)
	switch {
	case errors.As(err, &mismatch) && a.from == "" && tn.CheckSource(view) == nil:
		return cli.Exit(cli.ExitExists, fmt.Errorf("study %s exists, %s; give each --range as before, continue it in a new study with --from %s, or name another study with --study", mismatch.Study, mismatch.What, a.study))
	case errors.As(err, &mismatch):
		return cli.Exit(cli.ExitExists, fmt.Errorf("%w with --study", err))
	case err != nil:
		return err
	case made:
		g.Note(cmd, "Study %s: %d hyper-parameters to search, %s.", a.study, tn.Searched(), limitText(view.Spec))
	default:
		if err := a.checkLimits(cmd, view.Spec, spec); err != nil {
			return err
		}
		if view.Status == study.StatusFinished {
			g.Note(cmd, "Study %s has finished, with %s. To continue it, add --from %s and --trials or --budget.", a.study, cli.TrialsText(studies.Over(view)), a.study)
			break
		}
		g.Note(cmd, "Study %s continues: %d of its trials are over, %s.", a.study, studies.Over(view), limitText(view.Spec))
	}
	summary, err := a.work(ctx, g, cmd, svc, tn, view)
	if err != nil {
		return err
	}
	best, ok, err := tn.Best(ctx, svc, a.study)
	if err != nil {
		return err
	} else if !ok {
		return cli.Exit(cli.ExitFailure, fmt.Errorf("no trial has completed; see why with tuner trials %s", a.study))
	}
	return a.conclude(ctx, g, cmd, svc, tn, summary.Study, best)
}

// begin creates the study, or opens the existing one.
func (a *autoRun) begin(ctx context.Context, g *cli.Globals, cmd *cobra.Command, svc tuner.Service, tn *autotune.Tuning, spec study.Spec) (tuner.Study, bool, error) {
	if a.from == "" {
		return tn.Study(ctx, svc, a.study, spec)
	}
	source, err := svc.Study(ctx, a.from)
	if err != nil {
		return source, false, cli.Explain(ctx, svc, a.from, err)
	}
	if err := tn.CheckSource(source); err != nil {
		return source, false, err
	}
	view, made, err := tn.Continue(ctx, svc, a.study, spec)
	if err != nil || view.Status == study.StatusFinished {
		return view, made, err
	}
	// Trials that were taken over before are not taken over again.
	if err := studies.TakeOver(ctx, g, cmd, svc, a.study, source); err != nil {
		return view, made, err
	}
	view, err = svc.Study(ctx, a.study)
	return view, made, err
}

// checkLimits refuses limits that are not those of the study.
func (a *autoRun) checkLimits(cmd *cobra.Command, have, want study.Spec) error {
	same := map[string]bool{
		"trials":   have.MaxTrials == want.MaxTrials,
		"budget":   (have.MaxCost > 0) == (want.MaxCost > 0),
		"proposer": have.Proposer.Name == want.Proposer.Name,
		"pruner":   have.Pruner.Name == want.Pruner.Name,
	}
	for _, flag := range slices.Sorted(maps.Keys(same)) {
		if cmd.Flags().Changed(flag) && !same[flag] {
			return cli.Exit(cli.ExitExists, fmt.Errorf("study %s exists with another --%s (%s); leave the flag out, continue it in a new study with --from %s, or name another study with --study",
				a.study, flag, limitText(have), a.study))
		}
	}
	return nil
}

func limitText(s study.Spec) string {
	var words []string
	if s.MaxTrials > 0 {
		words = append(words, cli.TrialsText(s.MaxTrials))
	}
	if s.MaxCost > 0 {
		words = append(words, fmt.Sprintf("%s of training", time.Duration(s.MaxCost*float64(time.Second)).Round(time.Second)))
	}
	if len(words) == 0 {
		return "no limit, so stop it with Ctrl-C or tuner finish"
	}
	return strings.Join(words, " or ") + " in all"
}

// work runs trials until the study has finished.
func (a *autoRun) work(ctx context.Context, g *cli.Globals, cmd *cobra.Command, svc tuner.Service, tn *autotune.Tuning, view tuner.Study) (runner.Summary, error) {
	claim, err := studies.ClaimLogs(g, cmd, a.logDir, a.study, "")
	if err != nil {
		return runner.Summary{}, err
	}
	defer claim.Release()
	p := studies.NewProgress(ctx, cmd.ErrOrStderr(), g, svc, view)
	summary, err := runner.Run(ctx, svc, runner.Options{
		Study: a.study, Parallel: a.workers, Worker: claim.Worker, LogDir: claim.Dir, MaxLog: runner.DefaultMaxLog, Lease: a.lease,
		MaxFailures: 10, CostMetric: runner.CostSeconds, OnEvent: p.Event,
		Func: func(ctx context.Context, t study.Trial, out io.Writer) error {
			err := tn.Trial(ctx, svc, a.study, t, out)
			if stopped := (*autotune.StoppedError)(nil); errors.As(err, &stopped) {
				return fmt.Errorf("%w: %w", runner.ErrPruned, err)
			}
			return err
		},
	})
	p.End()
	return summary, studies.NoteRun(g, cmd, claim, summary, err)
}

// conclude fits the best configuration and theory's, writes the model and shows the result.
func (a *autoRun) conclude(ctx context.Context, g *cli.Globals, cmd *cobra.Command, svc tuner.Service, tn *autotune.Tuning, view tuner.Study, best study.Trial) error {
	spec := tn.Complete(view.Spec) // for studies of earlier versions too
	r := tuned{
		Algorithm: a.algorithm.Name, Study: a.study, Model: a.out, Trials: studies.Over(view), Measure: tn.Measure(),
		Edges: record.OfEdges(autotune.Edges(spec, best.Config)),
	}
	line := cli.NewStatusLine(g, cmd)
	defer line.End()
	fitting := func(what string) func(learners.Progress) error {
		what = "fitting " + what + " to training and validation rows"
		line.Draw(true, func() string { return what })
		return func(p learners.Progress) error {
			line.Draw(false, func() string { return fmt.Sprintf("%s: %d/%d", what, p.Iteration, p.Iterations) })
			return nil
		}
	}
	var err error
	if r.Best, err = tn.Refit(ctx, best, fitting("the best configuration")); err != nil {
		return err
	}
	averaged, err := tn.Average(ctx, svc, a.study, r.Best, func(model, of int) func(learners.Progress) error {
		return fitting(fmt.Sprintf("model %d of %d of an average", model, of))
	})
	line.End()
	if r.Average, err = a.save(g, cmd, r.Best.File, averaged, err); err != nil {
		return err
	}
	r.Idle = tn.Idle(r.Best.Values)
	theory, ok, err := autotune.Default(ctx, svc, a.study)
	switch {
	case err != nil:
		return err
	case ok && theory.Number == best.Number:
		r.Theory = r.Best
	case ok:
		if r.Theory, err = tn.Compare(ctx, theory, fitting("theory's configuration")); err != nil {
			return err
		}
	case theory.State == 0:
		g.Note(cmd, "No trial has theory's settings, so there is no comparison.")
	default:
		g.Note(cmd, "Trial %d with theory's settings did not complete, so there is no comparison.", theory.Number)
	}
	name, value, last := tn.LastStep(best)
	if last {
		r.Edges = append(r.Edges, record.Edge{Parameter: name, End: "high", Low: 1, High: record.Number(value)})
	}
	line.End()
	if err := r.write(cmd, *a.format); err != nil {
		return err
	}
	if n := len(r.Idle); n > 0 {
		g.Note(cmd, "In the best, %d of %d inputs have little effect: %s.", n, r.Best.File.Encoding.Dim(), training.Few(r.Idle))
	}
	trials.RemarkEdges(g, cmd, spec, []study.Trial{best}, a.wider(g, cmd, spec))
	if last {
		g.Note(cmd, "Its best step is the last one, so more steps may be better. For more, repeat the command with --study NAME --set %s=%d.", name, 2*value)
	}
	if a.png != "" {
		if err := diagnose.DrawStudy(ctx, svc, view, g, cmd, []string{"history", "slices"}, a.png, ""); err != nil {
			return err
		}
	}
	a.next(g, cmd, r)
	return nil
}

// save writes the average to the file of the model, or best if there is none. If the average
// failed, it writes best and returns the error.
func (a *autoRun) save(g *cli.Globals, cmd *cobra.Command, best *learners.File, averaged *autotune.Averaged, err error) (*autotune.Averaged, error) {
	if err == nil && averaged != nil {
		return averaged, averaged.File.Save(a.out)
	}
	if failed := best.Save(a.out); failed != nil {
		return nil, errors.Join(err, failed)
	}
	if err != nil {
		g.Note(cmd, "The model in %s is that of the best trial, because the average did not end. The same command repeats it.", a.out)
	}
	return nil, err
}

type tuned struct {
	Algorithm string           `json:"algorithm"`
	Study     string           `json:"study"`
	Model     string           `json:"model"`
	Trials    int              `json:"trials"`
	Measure   string           `json:"measure"`
	Best      *autotune.Fitted `json:"best"`
	// Average is the model in the file, or nil if that is Best.
	Average *autotune.Averaged `json:"average,omitempty"`
	Theory  *autotune.Fitted   `json:"theory,omitempty"`
	Edges   []record.Edge      `json:"edges,omitempty"` // ends of ranges at which the best lies
	// Idle are the inputs that have little effect in the best.
	Idle []string `json:"inputs_without_effect,omitempty"`
}

func (r tuned) write(cmd *cobra.Command, form string) error {
	out := cmd.OutOrStdout()
	if form == "json" {
		return cli.WriteJSON(out, r)
	}
	heads := []string{"CONFIGURATION", "BEST", "THEORY"}
	if r.Average != nil {
		heads = slices.Insert(heads, 1, "AVERAGE")
	}
	w := cli.NewTable(out, heads...)
	row := func(name, average string, of func(*autotune.Fitted) string) {
		cells := []string{name, of(r.Best), "-"}
		if r.Theory != nil {
			cells[2] = of(r.Theory)
		}
		if r.Average != nil {
			cells = slices.Insert(cells, 1, average)
		}
		w.Row(cells...)
	}
	average := cmp.Or(r.Average, &autotune.Averaged{})
	row("trial", cli.TrialsText(len(average.Members)), func(f *autotune.Fitted) string { return fmt.Sprint(f.Trial) })
	for _, name := range slices.Sorted(maps.Keys(r.Best.Values)) {
		row(name, "-", func(f *autotune.Fitted) string { return f.Values[name] })
	}
	if r.Best.Step > 0 {
		row("best step", "-", func(f *autotune.Fitted) string { return fmt.Sprint(f.Step) })
	}
	row("validation "+r.Measure, fmt.Sprintf("%.6g", average.Validation), func(f *autotune.Fitted) string { return fmt.Sprintf("%.6g", f.Validation) })
	if r.Best.ValidationClasses != nil {
		row("validation class-error", "-", func(f *autotune.Fitted) string { return fmt.Sprintf("%.6g", *f.ValidationClasses) })
	}
	for i, s := range r.Best.Test {
		text := ""
		if r.Average != nil {
			text = scoreText(average.Test[i])
		}
		row("test "+s.Name, text, func(f *autotune.Fitted) string { return scoreText(f.Test[i]) })
	}
	return w.End()
}

// next names the model and the commands to use next.
func (a *autoRun) next(g *cli.Globals, cmd *cobra.Command, r tuned) {
	where := ""
	switch {
	case g.Server != "":
		where = " --server " + cli.ShellQuote(g.Server)
	case postgres.HasPassword(g.Store):
		where = " --store …"
	case g.Store != "":
		where = " --store " + cli.ShellQuote(g.Store)
	case g.Db != "":
		where = " --db " + cli.ShellQuote(g.Db)
	}
	g.Note(cmd, "\nThe model is in %s.", r.Model)
	if r.Average != nil {
		g.Note(cmd, "%s", membersText(r.Average.Members))
	}
	if text := r.verdict(); text != "" {
		g.Note(cmd, "%s", text)
	}
	g.NoteCommands(cmd, [][2]string{
		{"predictions for new rows", "predict --model " + cli.ShellQuote(r.Model) + " --data NEW.csv"},
		{"every trial", "trials " + r.Study + where},
		{"the state of the proposer's model", "diagnose " + r.Study + where},
	})
}

// membersText names the trials of an average with their weights.
func membersText(members []autotune.Member) string {
	words := make([]string, len(members))
	for i, m := range members {
		words[i] = fmt.Sprintf("%d (%.0f%%)", m.Trial, 100*m.Weight)
	}
	last := len(words) - 1
	return fmt.Sprintf("It averages trials %s and %s.", strings.Join(words[:last], ", "), words[last])
}

// verdict compares the model with theory's settings.
func (r tuned) verdict() string {
	if r.Theory == nil || r.Theory.Validation <= 0 {
		return ""
	}
	if r.Theory == r.Best && r.Average == nil {
		return "No trial was better than theory's settings."
	}
	what, best, test := "validation "+r.Measure, r.Best.Validation, r.Best.Test
	if r.Average != nil {
		best, test = r.Average.Validation, r.Average.Test
	}
	theory := r.Theory.Validation
	if i := slices.IndexFunc(test, func(s training.Score) bool { return s.Name == r.Measure }); i >= 0 && r.Theory.Test[i].Value > 0 {
		what, best, theory = "test "+r.Measure, test[i].Value, r.Theory.Test[i].Value
	}
	change := 100 * (1 - best/theory)
	if change < 0 {
		return fmt.Sprintf("Its %s is %s above that of theory's settings.", what, percentText(-change))
	}
	return fmt.Sprintf("Its %s is %s below that of theory's settings.", what, percentText(change))
}

// percentText has at least two digits.
func percentText(x float64) string {
	if x >= 10 {
		return fmt.Sprintf("%.0f%%", x)
	}
	return fmt.Sprintf("%.2g%%", x)
}

// Commands returns the commands in the order of the help page.
func Commands(g *cli.Globals) []*cobra.Command {
	return append(cli.Connects(cli.ToService, newAuto(g)), newTrain(g), newPredict(g), newEvaluate(g), newLeverage(g))
}

// wider returns a function that says by which command to continue in wider ranges. It is
// the given command with the flags that hold for the new study too.
func (a *autoRun) wider(g *cli.Globals, cmd *cobra.Command, spec study.Spec) func([]space.Edge) string {
	return func(edges []space.Edge) string {
		words := []string{cli.ProgramName(), "auto", a.algorithm.Name}
		if a.demo { // these flags were not given
			words = append(words, "--data", cli.ShellQuote(a.data.paths[0]), "--target", "y", "--db", cli.ShellQuote(g.Db))
		}
		cmd.Flags().Visit(func(f *pflag.Flag) {
			switch f.Name {
			case "demo", "from", "study", "range", "out", "log-dir", "png", "quiet", "verbose":
				return
			case "db":
				if a.demo {
					return
				}
			}
			words = append(words, flagWords(f)...)
		})
		words = append(words, "--from", a.study)
		ranges := map[string]string{}
		for _, e := range edges {
			ranges[e.Parameter] = autotune.Wider(spec, e)
		}
		for _, text := range a.ranges {
			if name, _, _ := strings.Cut(text, "="); ranges[name] == "" {
				ranges[name] = text
			}
		}
		for _, name := range slices.Sorted(maps.Keys(ranges)) {
			words = append(words, "--range", ranges[name])
		}
		return "To continue in a wider range, run\n\n  " + strings.Join(words, " ")
	}
}

// flagWords are the shell words of a flag that was given.
func flagWords(f *pflag.Flag) []string {
	name := "--" + f.Name
	if f.Value.Type() == "bool" {
		return []string{name + "=" + f.Value.String()}
	}
	values := []string{f.Value.String()}
	if list, ok := f.Value.(pflag.SliceValue); ok {
		values = list.GetSlice()
	}
	var words []string
	for _, v := range values {
		words = append(words, name, cli.ShellQuote(v))
	}
	return words
}

// The demonstration is Friedman's first problem, which has five inputs that matter and
// five that do not.
const (
	demoRows   = 600
	demoTrials = 12 // within a second, with the error of 15
	demoNoise  = 1
)

// runDemo tunes FALKON on generated data.
func (a *autoRun) runDemo(g *cli.Globals, cmd *cobra.Command, args []string) error {
	if len(args) > 0 || len(a.data.paths) > 0 {
		return cli.Usagef("--demo has its own data and algorithm; leave them out")
	}
	if err := studies.DemoFile(g); err != nil {
		return err
	}
	file := g.Db + ".csv"
	if err := writeDemoData(file); err != nil {
		return err
	}
	a.data.paths, a.data.options.Target = []string{file}, []string{"y"}
	a.study, a.logDir = "demo", g.Db+".logs"
	if a.out == "" {
		a.out = g.Db + ".model"
	}
	if !cmd.Flags().Changed("trials") {
		a.trials = demoTrials
	}
	if !cmd.Flags().Changed("folds") {
		a.folds = 1 // five folds take five times as long, and one is enough to show
	}
	g.Note(cmd, "Tuning FALKON on %d generated rows in\n%s.\nTheir noise has the standard deviation %d, so no model can expect a lower rmse.\nOn these few rows a measured one may be a little lower by chance.", demoRows, file, demoNoise)
	err := a.run(cmd.Context(), g, cmd, "falkon")
	if errors.Is(err, context.Canceled) {
		g.NoteCommands(cmd, [][2]string{{"the rest of the demonstration", "auto --demo --db " + cli.ShellQuote(g.Db)}})
	}
	return err
}

// writeDemoData writes generated rows, the same each time.
func writeDemoData(path string) error {
	problem := data.Friedman{Noise: demoNoise, Seed: 1}
	rows, x := problem.Sampler(), make([]float64, problem.Dim())
	var b bytes.Buffer
	for j := range x {
		fmt.Fprintf(&b, "x%d,", j+1)
	}
	b.WriteString("y\n")
	for i := range uint64(demoRows) {
		y := rows.At(i, x)
		for _, v := range x {
			fmt.Fprintf(&b, "%.8g,", v)
		}
		fmt.Fprintf(&b, "%.8g\n", y)
	}
	return os.WriteFile(path, b.Bytes(), 0o666)
}
