package prune

import "github.com/bkbtuner/bkb/tuner/study"

// rule is the part of the work that differs between pruners. R is its note of one attempt,
// that is of one trial's reports under its last lease.
type rule[R any] interface {
	// begin returns the note of a trial without reports.
	begin(trial int) R
	// read takes in one more report.
	read(note *R, r study.Report)
	// withdraw undoes the effect of the attempt on other trials.
	withdraw(note *R)
	// finish ends an attempt that stays in the records, because t is completed or pruned.
	finish(note *R, t study.Trial)
	// judge decides about a running trial.
	judge(note *R) Verdict
}

// fold makes a rule a Pruner. It separates attempts and reads each report once.
type fold[R any] struct {
	rule    rule[R]
	running map[int]*attempt[R]
	over    []bool // by trial, true once it is completed or pruned, and finished
}

type attempt[R any] struct {
	epoch int
	read  int // of the trial's reports
	note  R
}

func newFold[R any](r rule[R]) Pruner {
	return &fold[R]{rule: r, running: make(map[int]*attempt[R])}
}

// Update implements [Pruner].
func (f *fold[R]) Update(t study.Trial) {
	if t.Number < len(f.over) && f.over[t.Number] {
		return
	}
	a := f.running[t.Number]
	counts := t.State == study.Running || t.State == study.Completed || t.State == study.Pruned
	if a != nil && (!counts || a.epoch != t.Epoch) {
		f.rule.withdraw(&a.note)
		delete(f.running, t.Number)
		a = nil
	}
	if !counts {
		return
	}
	if a == nil {
		a = &attempt[R]{epoch: t.Epoch, read: len(t.Reports) - len(t.CurrentReports()), note: f.rule.begin(t.Number)}
		f.running[t.Number] = a
	}
	for ; a.read < len(t.Reports); a.read++ {
		f.rule.read(&a.note, t.Reports[a.read])
	}
	if t.State != study.Running {
		f.rule.finish(&a.note, t)
		delete(f.running, t.Number)
		f.end(t.Number)
	}
}

func (f *fold[R]) end(trial int) {
	for len(f.over) <= trial {
		f.over = append(f.over, false)
	}
	f.over[trial] = true
}

// Decide implements [Pruner].
func (f *fold[R]) Decide(trial int) Verdict {
	if a := f.running[trial]; a != nil {
		return f.rule.judge(&a.note)
	}
	return Verdict{}
}
