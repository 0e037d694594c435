package cli

import (
	"context"
	"iter"

	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/study"
)

// AllTrials yields the trials that match, page by page, so that no more than a
// page is in memory. An error is yielded last.
func AllTrials(ctx context.Context, svc tuner.Service, name string, f tuner.Filter) iter.Seq2[study.Trial, error] {
	return func(yield func(study.Trial, error) bool) {
		left := f.Limit
		for {
			f.Limit = min(left, tuner.MaxPage)
			trials, more, err := svc.Trials(ctx, name, f)
			if err != nil {
				yield(study.Trial{}, err)
				return
			}
			for _, t := range trials {
				if !yield(t, nil) {
					return
				}
				f.First = t.Number + 1
			}
			if left > 0 {
				if left -= len(trials); left == 0 {
					return
				}
			}
			if !more {
				return
			}
		}
	}
}

// AllReports returns the reports of a trial, read page by page.
func AllReports(ctx context.Context, svc tuner.Service, name string, trial int) (all []study.Report, err error) {
	for more := true; more; {
		var page []study.Report
		page, more, err = svc.Reports(ctx, name, trial, len(all), 0)
		if err != nil {
			return nil, err
		}
		all = append(all, page...)
		more = more && len(page) > 0
	}
	return all, nil
}

// AllStudies yields the studies, page by page.
func AllStudies(ctx context.Context, svc tuner.Service) iter.Seq2[tuner.Study, error] {
	return func(yield func(tuner.Study, error) bool) {
		after := ""
		for {
			studies, more, err := svc.Studies(ctx, after, 0)
			if err != nil {
				yield(tuner.Study{}, err)
				return
			}
			for _, s := range studies {
				if !yield(s, nil) {
					return
				}
				after = s.Name
			}
			if !more {
				return
			}
		}
	}
}
