package studies

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/bkbtuner/bkb/cmd/tuner/cli"
	"github.com/bkbtuner/bkb/cmd/tuner/record"
	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/katib"
	"github.com/bkbtuner/bkb/tuner/propose"
	"github.com/bkbtuner/bkb/tuner/prune"
	"github.com/bkbtuner/bkb/tuner/runner"
	"github.com/bkbtuner/bkb/tuner/space"
	"github.com/bkbtuner/bkb/tuner/study"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// specFlags are the flags that describe a new study. The spec has what they say, but for
// those that need more.
type specFlags struct {
	study.Spec
	space              string
	minimize, maximize []string
	constraints        []string
	attributes         []string
	target             float64

	fill func(*study.Spec) // with what the file of space gives, once it was read
}

// specPage is the page with the flags that describe a study.
const specPage = "tuner create-study"

// The groups of the flags.
var (
	aboutStudy = cli.Group{Title: "Study", See: specPage}
	limits     = cli.Group{Title: "Limits", See: specPage}
	method     = cli.Group{Title: "Method", See: specPage}
)

// option is a setting of a study with its flag.
type option struct {
	flag   string
	group  cli.Group
	define func(fs *pflag.FlagSet, f *specFlags)
	apply  func(f *specFlags, to *study.Spec) error // overwrites the setting
	same   func(a, b study.Spec) bool               // nil if another flag compares it
}

// options are the settings of a study, in the order of the help page.
var options = []option{
	{"space", aboutStudy, func(fs *pflag.FlagSet, f *specFlags) {
		fs.StringVar(&f.space, "space", "", "`file` with the search space, - for stdin")
	}, nil, func(a, b study.Spec) bool { return a.Space.Equal(b.Space) }},
	{"minimize", aboutStudy, func(fs *pflag.FlagSet, f *specFlags) {
		fs.StringSliceVar(&f.minimize, "minimize", nil, "`objective` to minimize (repeatable)")
	}, applyObjectives, func(a, b study.Spec) bool { return slices.Equal(a.Objectives, b.Objectives) }},
	{"maximize", aboutStudy, func(fs *pflag.FlagSet, f *specFlags) {
		fs.StringSliceVar(&f.maximize, "maximize", nil, "`objective` to maximize (default minimize value)")
	}, applyObjectives, nil},
	{"attr", aboutStudy, func(fs *pflag.FlagSet, f *specFlags) {
		fs.StringArrayVar(&f.attributes, "attr", nil, "note on the study, `key=value` (repeatable)")
	}, func(f *specFlags, to *study.Spec) (err error) {
		to.Attributes, err = cli.ParseAttributes(f.attributes)
		return err
	}, nil},
	field("max-trials", limits, "number of trials, 0 for no limit", (*pflag.FlagSet).IntVar, 0, func(s *study.Spec) *int { return &s.MaxTrials }),
	field("timeout", limits, "time from the creation on, such as 12h", (*pflag.FlagSet).DurationVar, 0, func(s *study.Spec) *time.Duration { return &s.Timeout }),
	field("max-cost", limits, "sum of the told costs", (*pflag.FlagSet).Float64Var, 0, func(s *study.Spec) *float64 { return &s.MaxCost }),
	field("patience", limits, "trials in a row without a better value", (*pflag.FlagSet).IntVar, 0, func(s *study.Spec) *int { return &s.Patience }),
	{"target", limits, func(fs *pflag.FlagSet, f *specFlags) {
		fs.Float64Var(&f.target, "target", 0, "value that is good enough (default none)")
	}, func(f *specFlags, to *study.Spec) error {
		to.Target = &f.target
		return nil
	}, func(a, b study.Spec) bool {
		return a.Target == b.Target || a.Target != nil && b.Target != nil && *a.Target == *b.Target
	}},
	field("lease", limits, "time without a heartbeat (default 1h)", (*pflag.FlagSet).DurationVar, 0, func(s *study.Spec) *time.Duration { return &s.Lease }),
	field("max-retries", limits, "restarts after expired leases", (*pflag.FlagSet).IntVar, study.DefaultMaxRetries, func(s *study.Spec) *int { return &s.MaxRetries }),
	field("proposer", method, "`proposer`, bkb (default), sobol, random or grid", componentVar, study.Component{}, func(s *study.Spec) *study.Component { return &s.Proposer }),
	{"constraint", method, func(fs *pflag.FlagSet, f *specFlags) {
		fs.StringArrayVar(&f.constraints, "constraint", nil, "`limit` such as \"latency <= 10\" (repeatable)")
	}, func(f *specFlags, to *study.Spec) (err error) {
		for _, text := range f.constraints {
			if wrong := tuner.Constrain(&to.Proposer, text); wrong != nil {
				err = errors.Join(err, cli.Usagef("--constraint %w", wrong))
			}
		}
		return err
	}, nil},
	field("pruner", method, "`pruner`: "+prune.Listed(), componentVar, study.Component{}, func(s *study.Spec) *study.Component { return &s.Pruner }),
	field("seed", method, "seed of random numbers (default a random one)", (*pflag.FlagSet).Uint64Var, 0, func(s *study.Spec) *uint64 { return &s.Seed }),
}

// field is an option that is a field of the spec.
func field[T comparable](flag string, group cli.Group, usage string, define func(fs *pflag.FlagSet, to *T, name string, value T, usage string), value T, at func(*study.Spec) *T) option {
	return option{
		flag: flag, group: group,
		define: func(fs *pflag.FlagSet, f *specFlags) { define(fs, at(&f.Spec), flag, value, usage) },
		apply:  func(f *specFlags, to *study.Spec) error { *at(to) = *at(&f.Spec); return nil },
		same:   func(a, b study.Spec) bool { return *at(&a) == *at(&b) },
	}
}

func applyObjectives(f *specFlags, to *study.Spec) error {
	to.Objectives = nil
	for _, name := range f.minimize {
		to.Objectives = append(to.Objectives, study.Objective{Name: name, Direction: study.Minimize})
	}
	for _, name := range f.maximize {
		to.Objectives = append(to.Objectives, study.Objective{Name: name, Direction: study.Maximize})
	}
	return nil
}

func (f *specFlags) add(cmd *cobra.Command) {
	for _, o := range options {
		cli.FlagGroup(cmd, o.group, func(fs *pflag.FlagSet) { o.define(fs, f) })
	}
	cli.Register(cmd, "proposer", cli.Component(propose.Names, propose.Options))
	cli.Register(cmd, "pruner", cli.Component(prune.Names, prune.Options))
}

func (f *specFlags) given(cmd *cobra.Command) bool {
	return slices.ContainsFunc(options, func(o option) bool { return cmd.Flags().Changed(o.flag) })
}

// apply overwrites a spec with the flags that were given.
func (f *specFlags) apply(g *cli.Globals, cmd *cobra.Command, spec *study.Spec) error {
	if f.space != "" && f.fill == nil {
		var err error
		if f.fill, err = f.readSpace(g, cmd); err != nil {
			return err
		}
	}
	if f.fill != nil {
		f.fill(spec)
	}
	for _, o := range options {
		if o.apply != nil && cmd.Flags().Changed(o.flag) {
			if err := o.apply(f, spec); err != nil {
				return err
			}
		}
	}
	return nil
}

// difference names the flag of something in which two specs differ, or is empty.
func difference(a, b study.Spec) string {
	for _, o := range options {
		if o.same != nil && !o.same(a, b) {
			if o.flag == "minimize" {
				return "--minimize or --maximize"
			}
			return "--" + o.flag
		}
	}
	return ""
}

// agree refuses flags that differ from an existing study. Given flags are compared after change.
func (f *specFlags) agree(g *cli.Globals, cmd *cobra.Command, view tuner.Study, change func(want *study.Spec)) error {
	if !f.given(cmd) {
		return nil
	}
	want := view.Spec
	if err := f.apply(g, cmd, &want); err != nil {
		return err
	}
	change(&want)
	what, file := difference(view.Spec, want), view.Spec
	if f.fill != nil {
		f.fill(&file)
	}
	switch changed := cmd.Flags().Changed; {
	case what == "":
		return nil
	case what == "--proposer" && changed("constraint"):
		if what = "--constraint"; changed("proposer") {
			what = "--proposer or --constraint"
		}
	case what == difference(view.Spec, file) && what != "--space":
		what = "--space, whose file gives " + what
	}
	return cli.Exit(cli.ExitExists, fmt.Errorf("study %[1]s exists with another %[2]s; leave the flag out, or make a new study (create-study NAME --from %[1]s)", view.Name, what))
}

// readSpace returns a function that sets the space of a spec. Of a whole Experiment of Katib
// it sets the other settings too, unless flags give them.
func (f *specFlags) readSpace(g *cli.Globals, cmd *cobra.Command) (fill func(*study.Spec), err error) {
	sp, form, text, err := readSpace(g, cmd, f.space)
	if err != nil {
		return nil, err
	}
	alone := func(spec *study.Spec) { spec.Space = sp }
	if form != space.FormKatib || !katib.IsExperiment(text) {
		return alone, nil
	}
	changed := cmd.Flags().Changed
	if from := cmd.Flags().Lookup("from"); from != nil && from.Changed {
		g.Note(cmd, "%s: only its parameters are read, because --from gives the other settings.", f.space)
		return alone, nil
	}
	given := katib.Given{
		Objective: len(f.minimize)+len(f.maximize) > 0, MaxTrials: changed("max-trials"),
		Proposer: changed("proposer"), Pruner: changed("pruner"), Seed: changed("seed"),
	}
	x, err := katib.ReadManifest(text, given)
	if err != nil {
		return nil, cli.Exit(cli.ExitInvalid, fmt.Errorf("%s: %w", f.space, err))
	}
	if len(x.Left) > 0 {
		g.Note(cmd, "%s: left out %s (how Katib runs trials).", f.space, strings.Join(x.Left, ", "))
	}
	return func(spec *study.Spec) {
		spec.Space = sp
		set(&spec.Objectives, []study.Objective{x.Objective}, !given.Objective)
		set(&spec.MaxTrials, x.MaxTrials, !given.MaxTrials)
		set(&spec.Proposer, study.Component{Name: x.Proposer}, x.Proposer != "")
		set(&spec.Seed, x.Seed, x.HasSeed)
	}, nil
}

func set[T any](to *T, value T, given bool) {
	if given {
		*to = value
	}
}

// NewSpec is the spec of a study without flags.
func NewSpec() study.Spec {
	var seed [8]byte
	rand.Read(seed[:])
	return study.Spec{
		Objectives: []study.Objective{{Name: "value", Direction: study.Minimize}},
		MaxRetries: study.DefaultMaxRetries,
		Seed:       binary.LittleEndian.Uint64(seed[:]) >> 11, // so that JSON readers keep all its digits
	}
}

// componentVar adds a flag with a proposer or pruner.
func componentVar(fs *pflag.FlagSet, to *study.Component, name string, _ study.Component, usage string) {
	fs.Var(&component{to, name, ""}, name, usage)
}

// component is the value NAME, NAME:{json} or NAME:key=value,… of a flag.
type component struct {
	to         *study.Component
	flag, text string
}

func (c *component) String() string { return c.text }
func (c *component) Type() string   { return c.flag }

func (c *component) Set(text string) (err error) {
	c.text = text
	*c.to, err = ParseComponent(c.flag, text)
	return err
}

// ParseComponent reads NAME, NAME:{json} or NAME:key=value,….
func ParseComponent(flag, text string) (c study.Component, err error) {
	name, options, given := strings.Cut(text, ":")
	if c.Name = name; !given || strings.HasPrefix(options, "{") {
		c.Options = options
		return c, nil
	}
	var fields [][2]string
	for item := range strings.SplitSeq(options, ",") {
		key, value, ok := strings.Cut(item, "=")
		if !ok || key == "" {
			return c, cli.Usagef("--%s: %q is not key=value", flag, item)
		}
		fields = append(fields, [2]string{key, value})
	}
	text, twice := study.TextOptions(fields)
	if twice != "" {
		return c, cli.Usagef("--%s: the option %s is given twice; leave one out", flag, twice)
	}
	c.Options = text
	return c, nil
}

func newCreateStudy(g *cli.Globals) *cobra.Command {
	var spec specFlags
	var from, requestID string
	var skip bool
	cmd := &cobra.Command{
		Use:   "create-study NAME",
		Short: "Create a study",
		Long: `Create-study creates a study and prints its name.

The file of --space is described in tuner space, and may come from Optuna or Katib. Of
Katib's Experiments other settings are read too. Options of a proposer or pruner are
written as bkb:start=10,cost=told or as bkb:{"start": 10} (see docs/cli.md).

With --from the new study has the settings of another one, unless a flag changes them,
and its finished trials that fit the new space. They do not count for --max-trials.`,
		Example: `  tuner create-study digits --space space.yaml --minimize loss --max-trials 100
  tuner create-study digits-2 --from digits --space wider.yaml`,
		Args: cli.Exactly(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if spec.space == "" && from == "" {
				return cli.Usagef("there is no search space; give --space FILE or --from STUDY")
			}
			return g.With(cmd, cli.MayCreate, func(ctx context.Context, svc tuner.Service) error {
				c, source := study.Create{RequestID: requestID, Spec: NewSpec()}, tuner.Study{}
				if from != "" {
					var err error
					if source, err = svc.Study(ctx, from); err != nil {
						return cli.Explain(ctx, svc, from, err)
					}
					seed := c.Spec.Seed
					c.Spec = source.Spec
					c.Spec.Seed, c.Spec.Attributes = seed, nil
				}
				if err := spec.create(ctx, g, cmd, svc, args[0], c, skip); err != nil {
					return err
				}
				if from != "" {
					if err := TakeOver(ctx, g, cmd, svc, args[0], source); err != nil {
						return err
					}
				}
				_, err := fmt.Fprintln(cmd.OutOrStdout(), args[0])
				return err
			})
		},
	}
	spec.add(cmd)
	cli.FlagGroup(cmd, cli.Group{Title: "Creation"}, func(fs *pflag.FlagSet) {
		fs.StringVar(&from, "from", "", "`study` to take settings and trials from")
		fs.BoolVar(&skip, "skip-if-exists", false, "success if a study of this name exists")
		fs.StringVar(&requestID, "request-id", "", "`id` that makes it safe to repeat the request")
	})
	cli.Register(cmd, "from", g.Studies)
	return cmd
}

// create creates a study with the flags. With skip it accepts an existing one that agrees with
// them.
func (f *specFlags) create(ctx context.Context, g *cli.Globals, cmd *cobra.Command, svc tuner.Service, name string, c study.Create, skip bool) error {
	err := f.apply(g, cmd, &c.Spec)
	if err == nil {
		err = cli.CheckName(name)
	}
	if err != nil {
		return err
	}
	_, err = svc.CreateStudy(ctx, name, c)
	switch {
	case tuner.CodeOf(err) == tuner.AlreadyExists && skip:
		view, err := svc.Study(ctx, name)
		if err != nil {
			return err
		}
		if err := f.agree(g, cmd, view, func(*study.Spec) {}); err != nil {
			return err
		}
		g.Note(cmd, "Study %s exists.", name)
		return nil
	case tuner.CodeOf(err) == tuner.AlreadyExists:
		return fmt.Errorf("%w; --skip-if-exists accepts it as it is", err)
	case err != nil:
		return err
	}
	g.Note(cmd, "Created study %s.", name)
	if err := runner.CheckVariables(c.Spec.Space); err != nil {
		g.Note(cmd, "Warning: %v. Until then tuner run and -f env refuse this study.", err)
	}
	return nil
}

// TakeOver adds the source's finished trials that the new study allows.
func TakeOver(ctx context.Context, g *cli.Globals, cmd *cobra.Command, svc tuner.Service, name string, source tuner.Study) error {
	view, err := svc.Study(ctx, name)
	if err != nil {
		return err
	}
	added, refused, late, why := 0, 0, 0, ""
	for t, err := range cli.AllTrials(ctx, svc, source.Name, tuner.Filter{Reports: true}) {
		if err != nil {
			return err
		}
		if !t.State.Terminal() {
			continue
		}
		add, err := record.OfTrial(t).Add(view.Spec.Space)
		if err == nil {
			add.RequestID = "from-" + strconv.FormatUint(uint64(source.ID), 10) + "-" + strconv.Itoa(t.Number)
			_, err = svc.Add(ctx, name, add)
		}
		switch {
		case err == nil:
			added, late = added+1, late+len(t.Late)
		case tuner.CodeOf(err) == tuner.Invalid:
			if refused++; refused == 1 {
				why = fmt.Sprintf("Trial %d was the first: %v.", t.Number, err)
			}
		default:
			return errors.Join(fmt.Errorf("trial %d of %s could not be taken over", t.Number, source.Name), err)
		}
	}
	switch {
	case added > 0:
		g.Note(cmd, "Took over %s of %s.", cli.TrialsText(added), source.Name)
	case refused == 0:
		g.Note(cmd, "Took over no trials, because %s has no finished ones.", source.Name)
	default:
		g.Note(cmd, "Warning: took over no trials of %s.", source.Name)
	}
	if refused > 0 {
		g.Note(cmd, "Left out %s that the new space or objectives refuse. %s", cli.TrialsText(refused), why)
	}
	if late > 0 {
		g.Note(cmd, "Left out %s, which are not the values of trials.", cli.CountText(late, "late result"))
	}
	return nil
}
