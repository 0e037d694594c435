package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/bkbtuner/bkb/cmd/tuner/internal/record"
	"github.com/bkbtuner/bkb/learners"
	"github.com/bkbtuner/bkb/learners/training"
	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/autotune"
	"github.com/bkbtuner/bkb/tuner/runner"
	"github.com/bkbtuner/bkb/tuner/study"
	"github.com/spf13/cobra"
)

// defaultAutoTrials is how many trials there are unless somebody says otherwise.
const defaultAutoTrials = 60

func newAuto(g *globals) *cobra.Command {
	var a autoRun
	cmd := &cobra.Command{
		Use:   "auto ALGORITHM --data FILE",
		Short: "Tune a kernel learner on a file of data",
		Long: `Auto tunes the hyper-parameters of a bundled learner on a file of data, and writes the
best model to a file, for predict and evaluate. It makes a study, whose trials fit to
training rows and are judged on validation rows; those that a pruner gives up end
early. The first trial has theory's settings. At the end it fits the best
configuration to training and validation rows together, and shows it beside theory's.

The best configuration is that of the trial with the least error. As all trials fit and
are judged on the same rows, with the same seed, no luck decides; tuner best, which goes
by the proposer's model, may recommend another.

Ranges are theory's: they depend on the number of rows and on their distances. Where the
best lies at an end of one, stderr says so: --range lambda=1e-14..0.1 sets another.

` + trainList() + `

CTRL-C loses nothing: the same command goes on. So does a run that was killed. With
--server several machines that have the same data can work on one study, by the same
command: what --set and --range say is a study's for good. One that has finished is gone
on from in a new one, with --from and limits and ranges of its own; trials outside of
these stay behind.

` + dataHelp,
		Example: `  tuner auto --demo
  tuner auto falkon --data housing.csv --target price --trials 40 --out price.model
  tuner auto sgdrf --data big.csv --budget 30m --set passes=10 --set kernel=gaussian
  tuner auto falkon --data housing.csv --target price --from falkon-housing --trials 40
  tuner auto falkon --data housing.csv --target price --range lambda=1e-14..1e-4
  tuner auto falkon --data housing.csv --server tuner.example.org:7070 --study housing`,
		Args: between(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if a.demo {
				return a.runDemo(g, cmd, args)
			}
			if len(args) == 0 {
				return usagef("name the algorithm: tuner auto falkon --data FILE; or see: tuner auto --demo")
			}
			return a.run(cmd.Context(), g, cmd, args[0])
		},
	}
	a.flags(g, cmd)
	return cmd
}

// autoRun is a run of auto with its flags.
type autoRun struct {
	algorithm training.Algorithm
	data      dataFlags
	encoding  encodingFlags
	split     training.Split
	measure   string
	set       []string
	ranges    []string
	trials    int
	budget    time.Duration
	workers   int
	threads   int
	study     string
	from      string
	out       string
	png       string
	logDir    string
	lease     time.Duration
	proposer  string
	pruner    string
	format    *format
	demo      bool
}

func (a *autoRun) flags(g *globals, cmd *cobra.Command) {
	f := cmd.Flags()
	f.SortFlags = false
	a.data.add(cmd)
	a.data.addTarget(cmd)
	f.IntVar(&a.trials, "trials", defaultAutoTrials, "finish after so many trials (0, and the default beside --budget: no limit)")
	f.DurationVar(&a.budget, "budget", 0, "finish when the trials took so long, each of the workers: as 10m (0: no limit)")
	f.IntVarP(&a.workers, "workers", "j", 2, "how many trials at a time")
	f.StringVar(&a.study, "study", "", "the `name` of the study (default: of algorithm and file)")
	f.StringVar(&a.from, "from", "", "take over the trials of this `study` of the same data, and go on in a new one: for more than its limit")
	f.StringVarP(&a.out, "out", "o", "", "the `file` to write the model to (default: STUDY.model)")
	f.StringVar(&a.png, "png", "", "draw the history, and the error over each hyper-parameter, as PNG into this `folder`")
	f.StringVar(&a.measure, "measure", "", "the error to make small: "+strings.Join(learners.MeasureNames(), ", ")+" (default: rmse, or class-error)")
	f.StringArrayVar(&a.set, "set", nil, "a hyper-parameter that is not to be searched, `name=value`; repeat for more")
	f.StringArrayVar(&a.ranges, "range", nil, "where to search a hyper-parameter, `name=a..b`, in place of theory's range; repeat for more")
	f.Float64Var(&a.split.Validation, "validation", 0.2, "the `share` of rows to compare trials on")
	f.Float64Var(&a.split.Test, "test", 0.2, "the `share` of rows that only the end result is measured on")
	f.Uint64Var(&a.split.Seed, "seed", 1, "what random numbers are derived from")
	f.StringVar(&a.proposer, "proposer", "", "what suggests: bkb (default), sobol, random; `NAME` with options as in create-study")
	f.StringVar(&a.pruner, "pruner", "", "what stops trials early: median (default), asha, none; `NAME` likewise")
	f.DurationVar(&a.lease, "lease", runner.DefaultLease, "how long a worker holds a trial without a sign of life")
	g.proposeFlag(cmd)
	f.StringVar(&a.logDir, "log-dir", "", "where the logs of trials go, and who this run is (default: STUDY.logs)")
	f.IntVar(&a.threads, "threads", 0, "how many goroutines compute in each trial (0: processors divided by workers)")
	a.encoding.add(cmd)
	f.BoolVar(&a.demo, "demo", false, "tune FALKON on made-up data, in under a minute")
	a.format = formatFlag(cmd, "table", "json")
}

// run tunes.
func (a *autoRun) run(ctx context.Context, g *globals, cmd *cobra.Command, algorithm string) error {
	var err error
	if a.algorithm, err = training.Find(algorithm); err != nil {
		return &statusError{exitInvalid, err}
	}
	o, err := a.complete(cmd)
	if err != nil {
		return err
	}
	tn, err := a.prepare(ctx, g, cmd, o)
	if err != nil {
		return err
	}
	return g.with(cmd, mayCreate, func(ctx context.Context, svc tuner.Service) error {
		return a.tune(ctx, g, cmd, svc, tn)
	})
}

// complete checks the flags and sets what follows from others.
func (a *autoRun) complete(cmd *cobra.Command) (o autotune.Options, err error) {
	switch {
	case len(a.data.paths) == 0:
		return o, usagef("name the file of the data with --data")
	case a.trials < 0 || a.budget < 0:
		return o, usagef("--trials and --budget must not be negative")
	case a.workers < 1 || a.threads < 0:
		return o, usagef("--workers must be at least 1, --threads at least 0")
	case !(a.split.Validation > 0):
		return o, usagef("--validation must be above 0: trials are compared on these rows")
	}
	if a.budget > 0 && !cmd.Flags().Changed("trials") {
		a.trials = 0
	}
	if a.threads == 0 {
		a.threads = max((runtime.NumCPU()+a.workers-1)/a.workers, 1)
	}
	switch {
	case a.study == "" && a.from != "":
		a.study = successor(a.from)
	case a.study == "":
		a.study = studyNameOf(a.algorithm.Name, a.data.paths[0])
	case a.study == a.from:
		return o, usagef("--from %s: takes over the trials of another study; leave --study out, or name a new one", a.from)
	}
	if err := checkName(a.study); err != nil {
		return o, err
	}
	if a.out == "" {
		a.out = a.study + ".model"
	}
	if a.logDir == "" {
		a.logDir = a.study + ".logs"
	}
	if err := checkModelOut(a.out, append(slices.Clone(a.data.paths), a.data.options.TargetPath)...); err != nil {
		return o, err
	}
	if a.png != "" { // before time is spent
		if err := os.MkdirAll(a.png, 0o755); err != nil {
			return o, err
		}
	}
	if err := a.algorithm.CheckMeasure(a.measure); err != nil {
		return o, usagef("--measure: %w", err)
	}
	o = autotune.Options{Measure: a.measure, Seed: a.split.Seed, Workers: a.threads}
	return o, a.parameters(&o)
}

// parameters reads what is said of single hyper-parameters.
func (a *autoRun) parameters(o *autotune.Options) error {
	o.Fixed, o.Ranges = training.Values{}, map[string]autotune.Range{}
	for _, pair := range a.set {
		name, value, ok := strings.Cut(pair, "=")
		if !ok || name == "" {
			return usagef("--set: %q is not name=value", pair)
		}
		o.Fixed[name] = value
	}
	if err := a.algorithm.Check(o.Fixed); err != nil {
		return dataError(err)
	}
	for _, text := range a.ranges {
		name, r, err := autotune.ParseRange(text)
		if err != nil {
			return usagef("--range: %w", err)
		}
		if _, twice := o.Ranges[name]; twice {
			return usagef("--range: %s is there twice; leave one out", name)
		}
		o.Ranges[name] = r
	}
	return refused(autotune.CheckRanges(a.algorithm, o.Fixed, o.Ranges))
}

// studyNameOf makes the name of a study from those of algorithm and file.
func studyNameOf(algorithm, path string) string {
	base, _, _ := strings.Cut(filepath.Base(path), ".")
	base = strings.Trim(strings.Map(func(r rune) rune {
		switch {
		case 'A' <= r && r <= 'Z':
			return r - 'A' + 'a'
		case 'a' <= r && r <= 'z', '0' <= r && r <= '9', r == '-', r == '_':
			return r
		}
		return '-'
	}, base), "-")
	if base == "" {
		return algorithm
	}
	return fmt.Sprintf("%s-%.40s", algorithm, base)
}

// successor is the name of the study that goes on from another: a-2 after a, a-3 after
// a-2.
func successor(name string) string {
	if i := strings.LastIndexByte(name, '-'); i > 0 {
		if n, err := strconv.Atoi(name[i+1:]); err == nil && n > 1 && n < 1000 {
			return fmt.Sprintf("%s-%d", name[:i], n+1)
		}
	}
	return name + "-2"
}

// prepare reads the data.
func (a *autoRun) prepare(ctx context.Context, g *globals, cmd *cobra.Command, o autotune.Options) (*autotune.Tuning, error) {
	encoding, err := a.encoding.encoding()
	if err != nil {
		return nil, err
	}
	table, err := a.data.openLabelled(ctx, g, cmd)
	if err != nil {
		return nil, err
	}
	defer table.Close()
	data, err := training.Prepare(ctx, table, a.split, encoding)
	if err != nil {
		return nil, refused(err)
	}
	g.noteTable(cmd, table, data.Encoding)
	tn, err := autotune.New(ctx, a.algorithm, data, o)
	return tn, refused(err)
}

// spec is what the flags say of the study.
func (a *autoRun) spec() (study.Spec, error) {
	s := study.Spec{
		MaxTrials: a.trials, MaxCost: a.budget.Seconds() * float64(a.workers), Lease: a.lease,
		MaxRetries: defaultMaxRetries, Seed: a.split.Seed,
	}
	var err error
	if s.Proposer, err = parseComponent("proposer", a.proposer); err == nil {
		s.Pruner, err = parseComponent("pruner", a.pruner)
	}
	return s, err
}

// tune works on the study, and ends with the model if it finished.
func (a *autoRun) tune(ctx context.Context, g *globals, cmd *cobra.Command, svc tuner.Service, tn *autotune.Tuning) error {
	spec, err := a.spec()
	if err != nil {
		return err
	}
	view, made, err := a.begin(ctx, g, cmd, svc, tn, spec)
	mismatch := (*autotune.MismatchError)(nil)
	switch {
	case errors.As(err, &mismatch) && a.from == "" && tn.CheckSource(view) == nil:
		return &statusError{
			statusOf(&tuner.RemoteError{Code: tuner.AlreadyExists}),
			fmt.Errorf("study %s exists, %s; give each --range as then, go on from it in a new study with --from %s, or name another with --study", mismatch.Study, mismatch.What, a.study),
		}
	case errors.As(err, &mismatch):
		return &statusError{statusOf(&tuner.RemoteError{Code: tuner.AlreadyExists}), fmt.Errorf("%w with --study", err)}
	case err != nil:
		return err
	case made:
		g.note(cmd, "Study %s: %d hyper-parameters to search, %s.", a.study, tn.Searched(), limitText(view.Spec))
	default:
		if err := a.checkLimits(cmd, view); err != nil {
			return err
		}
		if view.Status == study.StatusFinished {
			g.note(cmd, "Study %s had finished before, with %s; --from %s, with --trials or --budget, goes on from it.", a.study, trialsText(over(view)), a.study)
			break
		}
		g.note(cmd, "Study %s goes on: %d of its trials are over, %s.", a.study, over(view), limitText(view.Spec))
	}
	summary, err := a.work(ctx, g, cmd, svc, tn, view)
	if summary.Study.Name != "" {
		g.note(cmd, "%s", runText(summary))
	}
	if len(summary.Left) > 0 {
		g.note(cmd, "Left running: %s. The same command goes on with %s.", numbersText(summary.Left), them(len(summary.Left)))
	}
	if errors.Is(err, context.Canceled) {
		return context.Canceled
	} else if err != nil {
		return err
	}
	best, ok, err := tn.Best(ctx, svc, a.study)
	if err != nil {
		return err
	} else if !ok {
		return &statusError{exitFailure, fmt.Errorf("no trial has completed; see why: tuner trials %s", a.study)}
	}
	return a.conclude(ctx, g, cmd, svc, tn, summary.Study, best)
}

// begin makes the study, or takes the one there is.
func (a *autoRun) begin(ctx context.Context, g *globals, cmd *cobra.Command, svc tuner.Service, tn *autotune.Tuning, spec study.Spec) (tuner.Study, bool, error) {
	if a.from == "" {
		return tn.Study(ctx, svc, a.study, spec)
	}
	source, err := svc.Study(ctx, a.from)
	if err != nil {
		return source, false, explain(ctx, svc, a.from, err)
	}
	if err := tn.CheckSource(source); err != nil {
		return source, false, err
	}
	view, made, err := tn.Continue(ctx, svc, a.study, spec)
	if err != nil || view.Status == study.StatusFinished {
		return view, made, err
	}
	// What was taken over before is not taken over again.
	c := creation{g: g, cmd: cmd, svc: svc, name: a.study}
	if err := c.takeOver(ctx, source); err != nil {
		return view, made, err
	}
	view, err = svc.Study(ctx, a.study)
	return view, made, err
}

// checkLimits refuses limits that are not those of the study.
func (a *autoRun) checkLimits(cmd *cobra.Command, view tuner.Study) error {
	want, err := a.spec()
	if err != nil {
		return err
	}
	for _, c := range []struct {
		flag string
		same bool
	}{
		{"trials", view.Spec.MaxTrials == want.MaxTrials},
		{"budget", (view.Spec.MaxCost > 0) == (want.MaxCost > 0)},
		{"proposer", view.Spec.Proposer.Name == want.Proposer.Name},
		{"pruner", view.Spec.Pruner.Name == want.Pruner.Name},
	} {
		if cmd.Flags().Changed(c.flag) && !c.same {
			return &statusError{
				statusOf(&tuner.RemoteError{Code: tuner.AlreadyExists}),
				fmt.Errorf("study %s exists with another --%s (%s); leave the flag out, go on from it in a new study with --from %s, or name another with --study",
					a.study, c.flag, limitText(view.Spec), a.study),
			}
		}
	}
	return nil
}

func limitText(s study.Spec) string {
	var words []string
	if s.MaxTrials > 0 {
		words = append(words, trialsText(s.MaxTrials))
	}
	if s.MaxCost > 0 {
		words = append(words, fmt.Sprintf("%s of training", time.Duration(s.MaxCost*float64(time.Second)).Round(time.Second)))
	}
	if len(words) == 0 {
		return "without end: stop it with Ctrl-C or tuner finish"
	}
	return strings.Join(words, " or ") + " in all"
}

// work runs trials until the study has finished.
func (a *autoRun) work(ctx context.Context, g *globals, cmd *cobra.Command, svc tuner.Service, tn *autotune.Tuning, view tuner.Study) (runner.Summary, error) {
	claim, err := runner.ClaimDir(a.logDir, "")
	if err != nil {
		return runner.Summary{}, err
	}
	defer claim.Release()
	p := newProgress(ctx, cmd.ErrOrStderr(), g, svc, view)
	defer p.end()
	return runner.Run(ctx, svc, runner.Options{
		Study: a.study, Parallel: a.workers, Worker: claim.Worker, LogDir: a.logDir, Lease: a.lease,
		MaxFailures: 10, CostMetric: runner.CostSeconds, OnEvent: p.event,
		Func: func(ctx context.Context, t study.Trial, out io.Writer) error {
			err := tn.Trial(ctx, svc, a.study, t, out)
			if stopped := (*autotune.StoppedError)(nil); errors.As(err, &stopped) {
				return fmt.Errorf("%w: %w", runner.ErrPruned, err)
			}
			return err
		},
	})
}

// conclude fits the best configuration and theory's, writes the model and shows
// what came out.
func (a *autoRun) conclude(ctx context.Context, g *globals, cmd *cobra.Command, svc tuner.Service, tn *autotune.Tuning, view tuner.Study, best study.Trial) error {
	spec := tn.Complete(view.Spec) // also if an earlier program made the study
	r := tuned{
		Algorithm: a.algorithm.Name, Study: a.study, Model: a.out, Trials: over(view), Measure: tn.Measure(),
		Edges: record.OfEdges(autotune.Edges(spec, best.Config)),
	}
	line := newStatusLine(g, cmd)
	defer line.end()
	refit := func(what string, t study.Trial) (*autotune.Fitted, error) {
		return tn.Refit(ctx, t, func(p learners.Progress) error {
			line.draw(p.Iteration == 1, func() string {
				return fmt.Sprintf("fitting %s to training and validation rows: %d/%d", what, p.Iteration, p.Iterations)
			})
			return nil
		})
	}
	var err error
	if r.Best, err = refit("the best configuration", best); err != nil {
		return err
	}
	if err := r.Best.File.Save(a.out); err != nil {
		return err
	}
	theory, ok, err := autotune.Default(ctx, svc, a.study)
	switch {
	case err != nil:
		return err
	case ok && theory.Number == best.Number:
		r.Theory = r.Best
	case ok:
		if r.Theory, err = refit("theory's configuration", theory); err != nil {
			return err
		}
	case theory.State == 0:
		g.note(cmd, "No trial has theory's settings: nothing to compare with.")
	default:
		g.note(cmd, "Theory's settings, trial %d, did not complete: nothing to compare with.", theory.Number)
	}
	name, value, last := tn.LastStep(best)
	if last {
		r.Edges = append(r.Edges, record.Edge{Parameter: name, End: "high", Low: 1, High: record.Number(value)})
	}
	line.end()
	if err := r.write(cmd, a.format.value); err != nil {
		return err
	}
	g.remarkEdges(cmd, spec, []study.Trial{best}, a.wider(g, cmd, spec))
	if last {
		g.note(cmd, "Its best step is the last: more may be better. tuner auto as before, but with --study NAME --set %s=%d, makes more.", name, 2*value)
	}
	if a.png != "" {
		files, err := writePlots(ctx, svc, view, best, a.png)
		if err != nil {
			return err
		}
		for _, file := range files {
			g.note(cmd, "wrote %s", file)
		}
	}
	a.next(g, cmd, r)
	return nil
}

// tuned is what came of a tuning.
type tuned struct {
	Algorithm string           `json:"algorithm"`
	Study     string           `json:"study"`
	Model     string           `json:"model"`
	Trials    int              `json:"trials"`
	Measure   string           `json:"measure"`
	Best      *autotune.Fitted `json:"best"`
	Theory    *autotune.Fitted `json:"theory,omitempty"`
	Edges     []record.Edge    `json:"edges,omitempty"` // at which the best lies
}

func (r tuned) write(cmd *cobra.Command, form string) error {
	out := cmd.OutOrStdout()
	if form == "json" {
		return writeJSON(out, r)
	}
	w := newTable(out, "CONFIGURATION", "BEST", "THEORY")
	row := func(name string, of func(*autotune.Fitted) string) {
		theory := "-"
		if r.Theory != nil {
			theory = of(r.Theory)
		}
		w.row(name, of(r.Best), theory)
	}
	row("trial", func(f *autotune.Fitted) string { return fmt.Sprint(f.Trial) })
	for _, name := range slices.Sorted(maps.Keys(r.Best.Values)) {
		row(name, func(f *autotune.Fitted) string { return f.Values[name] })
	}
	if r.Best.Step > 0 {
		row("best step", func(f *autotune.Fitted) string { return fmt.Sprint(f.Step) })
	}
	row("validation "+r.Measure, func(f *autotune.Fitted) string { return fmt.Sprintf("%.6g", f.Validation) })
	for i, s := range r.Best.Test {
		row("test "+s.Name, func(f *autotune.Fitted) string { return scoreText(f.Test[i]) })
	}
	return w.end()
}

// next says what there is now and what to do next.
func (a *autoRun) next(g *globals, cmd *cobra.Command, r tuned) {
	where := ""
	switch {
	case g.server != "":
		where = " --server " + shellQuote(g.server)
	case g.db != "":
		where = " --db " + shellQuote(g.db)
	}
	program := programName()
	g.note(cmd, "\nThe model is in %s%s. Go on with\n", r.Model, r.verdict())
	for _, n := range [][2]string{
		{"predict --model " + shellQuote(r.Model) + " --data NEW.csv", "predictions for new rows"},
		{"trials " + r.Study + where, "every trial"},
		{"diagnose " + r.Study + where, "what the proposer's model knows"},
	} {
		g.note(cmd, "  %s %-60s # %s", program, n[0], n[1])
	}
}

// verdict compares the best with theory's settings.
func (r tuned) verdict() string {
	if r.Theory == nil || r.Theory.Validation <= 0 {
		return ""
	}
	if r.Theory == r.Best {
		return "; no trial was better than theory's settings"
	}
	what, best, theory := "validation "+r.Measure, r.Best.Validation, r.Theory.Validation
	if i := slices.IndexFunc(r.Best.Test, func(s training.Score) bool { return s.Name == r.Measure }); i >= 0 && r.Theory.Test[i].Value > 0 {
		what, best, theory = "test "+r.Measure, r.Best.Test[i].Value, r.Theory.Test[i].Value
	}
	change := 100 * (1 - best/theory)
	if change < 0 {
		return fmt.Sprintf("; its %s is %s above that of theory's settings", what, percentText(-change))
	}
	return fmt.Sprintf("; its %s is %s below that of theory's settings", what, percentText(change))
}

// percentText has two digits, or those before the point.
func percentText(x float64) string {
	if x >= 10 {
		return fmt.Sprintf("%.0f%%", x)
	}
	return fmt.Sprintf("%.2g%%", x)
}
