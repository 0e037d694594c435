package view

import (
	"cmp"
	"time"

	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/propose"
	"github.com/bkbtuner/bkb/tuner/study"
)

// Digest is what lists show of a study beyond its state. It follows the events of the
// study, so that a list needs neither its trials nor its model.
type Digest struct {
	objectives []study.Objective
	violation  func(study.Outcome) float64 // of the constraints
	best       tuner.Measured              // of the trials that break the constraints least
	least      float64                     // their violation
	told       time.Time                   // when the last outcome was told
	recent     recent
}

// Observe notes the next event.
func (d *Digest) Observe(e study.Event) {
	switch b := e.Body.(type) {
	case study.Created:
		*d = Digest{objectives: b.Spec.Objectives, violation: propose.Violation(b.Spec.Proposer)}
	case study.Told:
		d.told = e.Time
		d.recent.add(e.Time)
		d.measure(b.Trial, b.Outcome)
	case study.Added:
		d.told = e.Time
		d.measure(b.Trial, b.Outcome)
	case study.ToldLate:
		d.told = e.Time
	}
}

// measure compares a completed trial with the best so far. Outcomes of completed trials
// never change, so the best never has to be searched again. A study of several
// objectives has no best trial.
func (d *Digest) measure(trial int, o study.Outcome) {
	if o.State != study.Completed || len(d.objectives) != 1 {
		return
	}
	m, _ := o.Metric(d.objectives[0].Name)
	y, broken := m.Mean(), d.violation(o)
	if d.best.Values != nil {
		c := cmp.Compare(broken, d.least)
		if c == 0 {
			c = cmp.Or(d.objectives[0].Direction.Compare(y, d.best.Values[0]), cmp.Compare(trial, d.best.Trial))
		}
		if c >= 0 {
			return
		}
	}
	d.best, d.least = tuner.Measured{Trial: trial, Values: []float64{y}}, broken
}

// show adds the digest to a study.
func (d *Digest) show(v *tuner.Study, now time.Time) {
	v.BestMeasured, v.LastTold, v.ToldLastHour = d.best, d.told, d.recent.lastHour(now)
}

// recent counts outcomes by minute for one hour.
type recent struct {
	minute int64 // since the epoch, of the newest count
	counts [60]int
}

func (r *recent) add(t time.Time) {
	m := t.Unix() / 60
	for ; r.minute < m; r.minute++ { // forget the minutes in between
		if m-r.minute > int64(len(r.counts)) {
			r.minute, r.counts = m, [60]int{}
			break
		}
		r.counts[(r.minute+1)%60] = 0
	}
	if r.minute-m < int64(len(r.counts)) { // the wall clock may have gone back
		r.counts[m%60]++
	}
}

// lastHour returns the outcomes of the minute of now and of the 59 before.
func (r *recent) lastHour(now time.Time) (n int) {
	last := now.Unix() / 60
	for m := max(last-59, r.minute-59); m <= min(last, r.minute); m++ {
		n += r.counts[m%60]
	}
	return n
}
