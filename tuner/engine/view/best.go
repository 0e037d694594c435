package view

import (
	"github.com/bkbtuner/bkb/tuner/propose"
	"github.com/bkbtuner/bkb/tuner/study"
)

// Best returns the Pareto front of the completed trials. With one objective, it is the
// first trial with the best mean. Trials that violate the constraints count only if no
// trial keeps them.
func Best(v *study.View) []study.Trial {
	if front := bestOf(v, propose.Keeps(v.Spec().Proposer)); len(front) > 0 {
		return front
	}
	return bestOf(v, func(study.Outcome) bool { return true })
}

func bestOf(v *study.View, counts func(study.Outcome) bool) []study.Trial {
	objectives := v.Spec().Objectives
	var front []study.Trial
	var means [][]float64 // of the front
	for t := range v.All(0) {
		if t.State != study.Completed || !counts(t.Outcome) {
			continue
		}
		mean := make([]float64, len(objectives))
		for i, o := range objectives {
			m, _ := t.Outcome.Metric(o.Name)
			mean[i] = m.Mean()
		}
		front, means = insert(objectives, front, means, t, mean)
	}
	return front
}

// insert adds a trial to the Pareto front unless the front dominates it, and removes
// the trials that it dominates. Of trials with equal means, one objective keeps only
// the first, and several objectives keep all.
func insert(objectives []study.Objective, front []study.Trial, means [][]float64, t study.Trial, mean []float64) ([]study.Trial, [][]float64) {
	for _, m := range means {
		if dominates(objectives, m, mean) || len(objectives) == 1 && !dominates(objectives, mean, m) {
			return front, means
		}
	}
	keep := 0
	for i, m := range means {
		if !dominates(objectives, mean, m) {
			front[keep], means[keep] = front[i], m
			keep++
		}
	}
	return append(front[:keep], t), append(means[:keep], mean)
}

// dominates reports whether a is at least as good as b in every objective and better in
// at least one.
func dominates(objectives []study.Objective, a, b []float64) bool {
	better := false
	for i, o := range objectives {
		switch c := o.Direction.Compare(a[i], b[i]); {
		case c > 0:
			return false
		case c < 0:
			better = true
		}
	}
	return better
}
