package data

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/bkbtuner/bkb/cmd/tuner/cli"
	"github.com/bkbtuner/bkb/cmd/tuner/record"
	"github.com/bkbtuner/bkb/cmd/tuner/studies"
	"github.com/bkbtuner/bkb/store"
	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/propose"
	"github.com/bkbtuner/bkb/tuner/study"
	"github.com/spf13/cobra"
)

// maxImport is the most bytes of a file of trials.
const maxImport = 1 << 30

func newImport(g *cli.Globals) *cobra.Command {
	var i importing
	cmd := &cobra.Command{
		Use:               "import STUDY FILE",
		Short:             "Import trials that were run elsewhere",
		ValidArgsFunction: cli.Args(g.Studies, cli.Files),
		Long: `Import adds the finished trials of a file (- for stdin) to a study. They do not count
towards --max-trials.

Formats:
  csv     as export writes it; config.NAME and value.NAME are enough
  json    as export writes it, a list
  jsonl   as export writes it, one trial on each line
  optuna  the output of optuna trials -f json, also with --flatten, or an object
          with trials and perhaps space, directions and metric_names

A file with a space or with distributions creates the study if it is missing. See docs/migrate.md for the export
from Optuna and others. Optuna's SQLite files and journals are read by
python -m bkb import-optuna.

The whole file is checked before anything is added. After an interruption, import the same
file again. Trials that are in the study already are not added again. Trials without an
outcome are left out, unless --enqueue is given.`,
		Example: "  tuner import digits old.csv\n  tuner import digits optuna.json --dry-run",
		Args:    cli.Exactly(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			data, err := cli.ReadFile(cmd, args[1], maxImport+1)
			if err == nil && len(data) > maxImport {
				err = fmt.Errorf("%s is larger than 1 GiB; split it", args[1])
			}
			if err == nil {
				err = refuseStorage(args[1], data)
			}
			if err != nil {
				return err
			}
			i.g, i.cmd, i.name, i.data = g, cmd, args[0], data
			i.file = args[1]
			switch {
			case *i.form == "auto":
				i.as = record.Detect(data)
			default:
				i.as = record.Form(*i.form)
			}
			if i.as == record.Optuna {
				i.source, i.nulls = record.OptunaSource(data)
			}
			_, _, makes, reason := record.OptunaStudy(data)
			err = g.With(cmd, cli.Existing(i.as != record.Optuna || !makes), i.run)
			if cli.StatusOf(err) == cli.ExitNotFound && i.as == record.Optuna && reason != nil {
				return cli.Exit(cli.ExitInvalid, fmt.Errorf("%s: %w", i.file, reason))
			}
			return err
		},
	}
	i.form = cli.FormatFlag(cmd, "auto", "csv", "jsonl", "json", "optuna")
	cmd.Flag("format").Usage = "`format` of the file, one of auto, csv, jsonl, json, optuna"
	cmd.Flags().BoolVar(&i.dryRun, "dry-run", false, "check of the file only")
	cmd.Flags().BoolVar(&i.enqueue, "enqueue", false, "queue for trials without an outcome, which are left out otherwise")
	return cmd
}

type importing struct {
	g               *cli.Globals
	cmd             *cobra.Command
	name, file      string
	data            []byte
	form            *string
	as              record.Form
	dryRun, enqueue bool
	source          string   // of a study that can grow, whose trials keep their order
	nulls           []string // parameters of Optuna whose choice null becomes none
	left            int      // trials without an outcome that are left out
	unfit           int      // trials of Optuna without a value that the space refuses
	late            int      // late results
	infinite        int      // trials with an infinity that cannot be measured
	partial         int      // trials with values of some objectives
	lacking         string   // the objective that the first of them lacks
	whole           bool     // a completed trial has values of all
	had             int      // trials of the study before the import
	added           int      // trials that are new
}

func (i *importing) run(ctx context.Context, svc tuner.Service) error {
	spec, exists, err := i.spec(ctx, svc)
	if err != nil {
		return err
	}
	n, err := i.check(spec)
	if err != nil {
		return cli.Exit(cli.ExitInvalid, fmt.Errorf("%s: nothing was imported: %w", i.file, err))
	}
	if n+i.left+i.unfit == 0 {
		return cli.Exit(cli.ExitInvalid, fmt.Errorf("nothing was imported: %s has no trials", i.file))
	}
	for _, name := range i.nulls {
		i.g.Note(i.cmd, "The choice null of parameter %s becomes none.", name)
	}
	for _, note := range []struct {
		n          int
		what, text string
	}{
		{i.left, "trial", "Leaving out %s without an outcome. With --enqueue they are queued."},
		{i.unfit, "trial", "Leaving out %s with a configuration that the space refuses."},
		{i.late, "late result", "Leaving out %s, which are not the values of trials."},
		{i.partial, "trial", "Importing %s as failed, because an objective such as " + i.lacking + " has no value."},
		{i.infinite, "trial", "Importing %s as failed, because the best possible value of an objective cannot be measured."},
	} {
		if note.n > 0 {
			i.g.Note(i.cmd, note.text, cli.CountText(note.n, note.what))
		}
	}
	if i.dryRun {
		i.g.Note(i.cmd, "%s: %s can be imported.", i.file, cli.TrialsText(n))
		return nil
	}
	if !exists {
		if err := cli.CheckName(i.name); err != nil {
			return err
		}
		if _, err := svc.CreateStudy(ctx, i.name, study.Create{Spec: spec}); err != nil {
			return err
		}
		i.g.Note(i.cmd, "Created study %s.", i.name)
		for _, p := range spec.Space.Parameters() {
			if len(p.When) > 0 {
				i.g.Note(i.cmd, "Parameter %s is active when %s.", p.Name, studies.WhenText(p))
			}
		}
	}
	if err := i.add(ctx, svc, spec, n); err != nil {
		return err
	}
	switch {
	case i.added == n:
		i.g.Note(i.cmd, "Imported %s.", cli.TrialsText(n))
	case i.added == 0 && n == 1:
		i.g.Note(i.cmd, "Imported no trials. The only one was there already.")
	case i.added == 0:
		i.g.Note(i.cmd, "Imported no trials. All %d were there already.", n)
	default:
		were := "were"
		if n-i.added == 1 {
			were = "was"
		}
		i.g.Note(i.cmd, "Imported %s. %d %s there already.", cli.CountText(i.added, "new trial"), n-i.added, were)
	}
	return nil
}

// spec is that of the study, or else of the study that the file describes.
func (i *importing) spec(ctx context.Context, svc tuner.Service) (spec study.Spec, exists bool, err error) {
	view, err := svc.Study(ctx, i.name)
	if err == nil {
		i.had = view.Trials
		return view.Spec, true, nil
	}
	if tuner.CodeOf(err) != tuner.NotFound || i.as != record.Optuna {
		return spec, false, cli.Explain(ctx, svc, i.name, err)
	}
	sp, objectives, ok, readErr := record.OptunaStudy(i.data)
	if readErr != nil {
		return spec, false, fmt.Errorf("%s: %w", i.file, readErr)
	}
	if !ok {
		return spec, false, cli.Explain(ctx, svc, i.name, err)
	}
	spec = studies.NewSpec()
	spec.Space, spec.Objectives = sp, objectives
	return spec, false, nil
}

// items calls f with the command for each trial to import and its place. It counts the
// trials and late results that are left out.
func (i *importing) items(spec study.Spec, f func(where string, c study.Command) error) error {
	i.left, i.late, i.unfit, i.infinite, i.partial = 0, 0, 0, 0, 0
	digest := sha256.Sum256(i.data)
	stable := i.as == record.Optuna && i.source != ""
	n := 0
	for item, err := range record.Read(i.data, i.as) {
		if err != nil {
			return err
		}
		n++
		r, measurable := item.Trial.Bind(spec.Objectives).Measurable(spec.Objectives)
		if !measurable {
			i.infinite++
		}
		if lacking := r.Lacking(spec.Objectives); lacking != "" {
			if i.partial++; i.partial == 1 {
				i.lacking = lacking
			}
			r.State, r.Message = study.Failed.String(), lacking+" had no value"
		}
		i.whole = i.whole || r.State == study.Completed.String()
		i.late += len(r.Late)
		if r.Unfinished() && !i.enqueue {
			i.left++ // it may lack parameters that it asks for later
			continue
		}
		if stable {
			digest = sha256.Sum256([]byte(i.source + "\x00" + r.Source))
		}
		id := fmt.Sprintf("import-%s-%d", hex.EncodeToString(digest[:12]), n)
		if stable && r.Unfinished() {
			id += "-open" // it ends later, and is another trial then
		}
		var c study.Command
		if !r.Unfinished() {
			var add study.Add
			add, err = r.Add(spec.Space)
			add.RequestID, add.Outcome = id, propose.Settle(spec, add.Outcome)
			c = add
		} else {
			e := study.Enqueue{RequestID: id, Attributes: r.Attributes}
			e.Config, err = record.Complete(spec.Space, r.Config)
			c = e
		}
		if err != nil && i.as == record.Optuna && r.State != study.Completed.String() {
			i.unfit++ // Optuna's may have ended before they had all parameters
			continue
		}
		if err != nil && i.as == record.Optuna && unknown(spec, r) {
			err = fmt.Errorf("%w; if the study of Optuna has a new parameter, import it under a new name", err)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", item.Where, err)
		}
		if err := f(item.Where, c); err != nil {
			return err
		}
	}
	return nil
}

// unknown tells whether a trial has a parameter that the search space lacks.
func unknown(spec study.Spec, r record.Trial) bool {
	for name := range r.Config.All() {
		if _, ok := spec.Space.Lookup(name); !ok {
			return true
		}
	}
	return false
}

// check checks every trial by the rules of the study, and counts those to add.
func (i *importing) check(spec study.Spec) (n int, err error) {
	spec.MaxTrials, spec.Timeout, spec.MaxCost = 0, 0, 0
	var s study.Study
	now := time.Now()
	_, events, err := s.Decide(now, study.Create{Spec: spec})
	if err != nil {
		return 0, err
	}
	if err := s.Apply(events[0]); err != nil {
		return 0, err
	}
	err = i.items(spec, func(where string, c study.Command) error {
		n++
		if _, _, err := s.Decide(now, c); err != nil {
			return fmt.Errorf("%s: %w", where, err)
		}
		return nil
	})
	if err == nil && i.partial > 0 && !i.whole {
		err = fmt.Errorf("no trial has a value of each objective, and %s is missing; add it, or give the trials the state failed", i.lacking)
	}
	return n, err
}

// importBatch is the number of trials that are added at once. A commit costs as much as
// some hundred trials. An interrupted import has added whole batches.
const importBatch = 500

// add adds the trials. Their number is of.
func (i *importing) add(ctx context.Context, svc tuner.Service, spec study.Spec, of int) (err error) {
	line := cli.NewStatusLine(i.g, i.cmd)
	defer line.End()
	var places []string
	batch, done := make([]study.Command, 0, importBatch), 0
	flush := func() error {
		if len(batch) == 0 {
			return nil
		}
		numbers, err := svc.AddAll(ctx, i.name, batch)
		for _, n := range numbers {
			if n >= i.had { // else an earlier import added it
				i.added++
			}
		}
		done += len(numbers)
		if at := (*tuner.CommandError)(nil); errors.As(err, &at) {
			done += at.Index
			if err = at.Err; at.Refused() {
				err = fmt.Errorf("%s: %w", places[at.Index], err)
			}
		}
		batch, places = batch[:0], places[:0]
		line.Draw(done == of, func() string { return fmt.Sprintf("importing: %d of %d trials", done, of) })
		return err
	}
	err = i.items(spec, func(where string, c study.Command) error {
		if batch, places = append(batch, c), append(places, where); len(batch) < importBatch {
			return nil
		}
		return flush()
	})
	if err == nil {
		err = flush()
	}
	if err != nil {
		line.End()
		i.leftOff(err, done, of)
	}
	return err
}

// leftOff notes the progress of a failed import, and whether it can continue.
func (i *importing) leftOff(err error, done, of int) {
	some, then := "", "."
	switch code := tuner.CodeOf(err); {
	case code == tuner.Unknown:
		some = "At least "
	case done == 0:
		return
	}
	if resumes(err) {
		then = ". The same command continues with the others."
	}
	i.g.Note(i.cmd, "%s%d of %d trials are imported%s", some, done, of, then)
}

// resumes tells whether the same import can continue after an error, because nothing is
// wrong with the file or the study.
func resumes(err error) bool {
	if large := (*store.LimitError)(nil); errors.As(err, &large) {
		return false
	}
	switch tuner.CodeOf(err) {
	case tuner.Cancelled, tuner.Deadline, tuner.Unavailable, tuner.Unknown, tuner.Exhausted:
		return true
	}
	return false
}
