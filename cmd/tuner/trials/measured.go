package trials

import (
	"context"
	"fmt"
	"strings"

	"github.com/bkbtuner/bkb/cmd/tuner/cli"
	"github.com/bkbtuner/bkb/cmd/tuner/record"
	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/propose"
	"github.com/bkbtuner/bkb/tuner/study"
	"github.com/spf13/cobra"
)

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
