package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/bkbtuner/bkb/cmd/tuner/internal/record"
	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/propose"
	"github.com/bkbtuner/bkb/tuner/study"
	"github.com/spf13/cobra"
)

// maxRemarked is the most trials that are read for a remark.
const maxRemarked = 20_000

// remarkBest writes remarks on the recommended trials to stderr.
func (g *globals) remarkBest(ctx context.Context, cmd *cobra.Command, svc tuner.Service, view tuner.Study, best []study.Trial) error {
	if judge := record.NewJudge(view.Spec); len(best) > 0 && judge.Breaks(best[0]) {
		g.note(cmd, "%s breaks a constraint (%s), as all completed trials do.", breaksMark, judge.Constraints())
	}
	g.remarkEdges(cmd, view.Spec, best, wider(view))
	return g.remarkMeasured(ctx, cmd, svc, view, best)
}

// remarkMeasured names the trial that measured better than the recommended one, if there
// is one. The model of the proposer bkb takes its result for luck.
func (g *globals) remarkMeasured(ctx context.Context, cmd *cobra.Command, svc tuner.Service, view tuner.Study, best []study.Trial) error {
	if len(view.Spec.Objectives) != 1 || len(best) != 1 || view.Trials > maxRemarked || g.quiet {
		return nil
	}
	o, least, keeps := view.Spec.Objectives[0], best[0], propose.Keeps(view.Spec.Proposer)
	for t, err := range allTrials(ctx, svc, view.Name, tuner.Filter{States: []study.TrialState{study.Completed}}) {
		if err != nil {
			return err
		}
		if keeps(t.Outcome) && measuredBetter(o, t, least) {
			least = t
		}
	}
	if least.Number != best[0].Number {
		g.note(cmd, "%s", luckText(best[0], least, o))
	}
	return nil
}

// luckText says why a trial is recommended and not another one that measured better, in lines
// that fit 80 columns. Late results of the two are listed, because tables do not show them.
func luckText(best, measured study.Trial, o study.Objective) string {
	text := fmt.Sprintf("Trial %d is the best by the prediction of the model, which allows for luck.\nThe best measured value is %s.", best.Number, bestText(measured, o))
	var late []string
	for _, t := range []study.Trial{best, measured} {
		for _, l := range t.Late {
			if t.Outcome = l.Outcome; l.Outcome.State == study.Completed {
				late = append(late, bestText(t, o))
			}
		}
	}
	if len(late) > 0 {
		text += "\nThe model knows late results too: " + strings.Join(late, ", ") + "."
	}
	return text
}

// measuredBetter compares the means of two trials' replicates.
func measuredBetter(o study.Objective, a, b study.Trial) bool {
	x, _ := a.Outcome.Metric(o.Name)
	y, _ := b.Outcome.Metric(o.Name)
	return o.Direction.Compare(x.Mean(), y.Mean()) < 0
}
