package trials

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/bkbtuner/bkb/cmd/tuner/cli"
	"github.com/bkbtuner/bkb/cmd/tuner/record"
	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/autotune"
	"github.com/bkbtuner/bkb/tuner/propose"
	"github.com/bkbtuner/bkb/tuner/space"
	"github.com/bkbtuner/bkb/tuner/study"
	"github.com/spf13/cobra"
)

// RemarkEdges writes to stderr at which ends of ranges the recommended trials lie, and the
// remedy.
func RemarkEdges(g *cli.Globals, cmd *cobra.Command, spec study.Spec, best []study.Trial, remedy func([]space.Edge) string) {
	edges, lines := edgesOf(spec, best)
	for _, line := range lines {
		g.Note(cmd, "%s.", line)
	}
	if len(lines) > 0 {
		g.Note(cmd, "The optimum may lie beyond.")
		g.Note(cmd, "%s", remedy(edges))
	}
}

// wider returns a function that says how to continue a study in wider ranges.
func wider(view tuner.Study) func([]space.Edge) string {
	return func(edges []space.Edge) string {
		if !autotune.Is(view.Spec) {
			return fmt.Sprintf("To continue in a wider range, run\n\n  tuner create-study %s --from %s --space FILE\n", Successor(view.Name), view.Name)
		}
		words := []string{"To continue in a wider range, repeat tuner auto with --from", view.Name}
		for _, e := range edges {
			words = append(words, "--range", autotune.Wider(view.Spec, e))
		}
		return strings.Join(words, " ") + "."
	}
}

// edgesOf returns the ends of ranges at which some of the best trials lie, and a line of
// text for each.
func edgesOf(spec study.Spec, best []study.Trial) (edges []space.Edge, lines []string) {
	counts := map[string]int{}
	for _, t := range best {
		for _, e := range autotune.Edges(spec, t.Config) {
			if counts[e.String()]++; counts[e.String()] == 1 {
				edges = append(edges, e) // in the order of the trials
			}
		}
	}
	for _, e := range edges {
		line := e.String()
		if len(best) > 1 {
			line += fmt.Sprintf(" in %d of the %d best trials", counts[line], len(best))
		}
		lines = append(lines, line)
	}
	return edges, lines
}

// Successor is the name of the study that continues another. It is a-2 after a, and a-3
// after a-2.
func Successor(name string) string {
	if i := strings.LastIndexByte(name, '-'); i > 0 {
		if n, err := strconv.Atoi(name[i+1:]); err == nil && n > 1 && n < 1000 {
			return fmt.Sprintf("%s-%d", name[:i], n+1)
		}
	}
	return name + "-2"
}

// MaxRemarked is the most trials that are read for a remark.
const MaxRemarked = 20_000

// RemarkBest writes remarks on the recommended trials to stderr.
func RemarkBest(ctx context.Context, g *cli.Globals, cmd *cobra.Command, svc tuner.Service, view tuner.Study, best []study.Trial) error {
	if judge := record.NewJudge(view.Spec); len(best) > 0 && judge.Breaks(best[0]) {
		g.Note(cmd, "%s breaks a constraint (%s), as all completed trials do.", breaksMark, judge.Constraints())
	}
	RemarkEdges(g, cmd, view.Spec, best, wider(view))
	return remarkMeasured(ctx, g, cmd, svc, view, best)
}

// remarkMeasured names the trial that measured better than the recommended one, if there
// is one. Repetitions or the model of the proposer bkb take its result for luck.
func remarkMeasured(ctx context.Context, g *cli.Globals, cmd *cobra.Command, svc tuner.Service, view tuner.Study, best []study.Trial) error {
	if len(view.Spec.Objectives) != 1 || len(best) != 1 || view.Trials > MaxRemarked || g.Quiet {
		return nil
	}
	o, least, keeps := view.Spec.Objectives[0], best[0], propose.Keeps(view.Spec.Proposer)
	for t, err := range cli.AllTrials(ctx, svc, view.Name, tuner.Filter{States: []study.TrialState{study.Completed}}) {
		if err != nil {
			return err
		}
		if keeps(t.Outcome) && MeasuredBetter(o, t, least) {
			least = t
		}
	}
	if least.Number != best[0].Number {
		g.Note(cmd, "%s", luckText(best[0], least, o))
	}
	return nil
}

// luckText says why a trial is recommended and not another one that measured better, in lines
// that fit 80 columns. Late results of the two are listed, because tables do not show them.
func luckText(best, measured study.Trial, o study.Objective) string {
	text := fmt.Sprintf("Trial %d is recommended by the mean of what was measured or expected there, which allows for luck.\nThe best measured value is %s.", best.Number, BestText(measured, o))
	var late []string
	for _, t := range []study.Trial{best, measured} {
		for _, l := range t.Late {
			if t.Outcome = l.Outcome; l.Outcome.State == study.Completed {
				late = append(late, BestText(t, o))
			}
		}
	}
	if len(late) > 0 {
		text += "\nThe model knows late results too: " + strings.Join(late, ", ") + "."
	}
	return text
}

// MeasuredBetter compares the means of two trials' replicates.
func MeasuredBetter(o study.Objective, a, b study.Trial) bool {
	x, _ := a.Outcome.Metric(o.Name)
	y, _ := b.Outcome.Metric(o.Name)
	return o.Direction.Compare(x.Mean(), y.Mean()) < 0
}

// BestText names a trial with its objective value.
func BestText(t study.Trial, o study.Objective) string {
	return fmt.Sprintf("%s=%s (trial %d)", o.Name, MeanText(record.OfTrial(t), o.Name), t.Number)
}

func StatusText(s tuner.Study) string {
	if s.Status == study.StatusFinished {
		return fmt.Sprintf("finished (%s)", s.Finished.Reason)
	}
	return s.Status.String()
}

// HeldText says which trial a study without others waits for, whose it is and for how long,
// or gives the error of the ask if no trial runs.
func HeldText(ctx context.Context, svc tuner.Service, name string, refused error) string {
	var first study.Trial
	held := 0
	for t, err := range cli.AllTrials(ctx, svc, name, tuner.Filter{States: []study.TrialState{study.Running}}) {
		if err != nil {
			return refused.Error()
		}
		if held++; held == 1 || t.Deadline.Before(first.Deadline) {
			first = t
		}
	}
	if held == 0 {
		return refused.Error()
	}
	whose, others := "another worker", ""
	if first.Worker != "" {
		whose = "worker " + first.Worker
	}
	if held > 1 {
		others = ", as others hold " + cli.TrialsText(held-1)
	}
	left := max(time.Until(first.Deadline), 0).Round(time.Second)
	return fmt.Sprintf("%s holds trial %d%s; its lease ends in %s unless a heartbeat comes", whose, first.Number, others, left)
}
