package view

import (
	"slices"

	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/study"
)

// Reports returns up to limit reports of a trial, starting at index first. more reports
// that there are others.
func Reports(trial study.Trial, first, limit int) (reports []study.Report, more bool) {
	if limit <= 0 || limit > tuner.MaxReportPage {
		limit = tuner.MaxReportPage
	}
	n := len(trial.Reports)
	first = min(max(first, 0), n)
	end := min(first+limit, n)
	return trial.Reports[first:end:end], end < n
}

// Trials returns the trials that match a filter.
func Trials(v *study.View, f tuner.Filter) (trials []study.Trial, more bool) {
	if f.Limit <= 0 || f.Limit > tuner.MaxPage {
		f.Limit = tuner.MaxPage
	}
	for trial := range v.All(f.First) {
		if !matches(f, trial) {
			continue
		}
		if len(trials) == f.Limit {
			return trials, true
		}
		if !f.Reports {
			trial = trial.WithoutReports()
		}
		trials = append(trials, trial)
	}
	return trials, false
}

func matches(f tuner.Filter, t study.Trial) bool {
	if f.Worker != "" && t.Worker != f.Worker {
		return false
	}
	return len(f.States) == 0 || slices.Contains(f.States, t.State)
}
