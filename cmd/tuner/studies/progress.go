package studies

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/bkbtuner/bkb/cmd/tuner/cli"
	"github.com/bkbtuner/bkb/cmd/tuner/record"
	"github.com/bkbtuner/bkb/cmd/tuner/trials"
	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/propose"
	"github.com/bkbtuner/bkb/tuner/runner"
	"github.com/bkbtuner/bkb/tuner/study"
	"github.com/bkbtuner/bkb/tuner/surrogate"
)

// progress shows the progress of a run. On a terminal it draws a bar, with lines for
// important events above it. Elsewhere it writes a line for each trial.
type progress struct {
	out      io.Writer
	terminal *os.File // nil if there is none
	g        *cli.Globals
	began    time.Time

	mu        sync.Mutex
	study     tuner.Study
	best      *study.Trial
	others    func(but int)              // reads the results of other workers
	held      func(refused error) string // what a study without a trial waits for
	keeps     func(study.Outcome) bool
	already   int     // trials that were over when the run began
	spent     float64 // and what they had cost
	running   int
	explained bool       // the line on predictions was written
	waiting   tuner.Code // the last reason for waiting that was written
	idle      time.Time  // since when there has been nothing to hand out
	done      chan struct{}
	ticking   sync.WaitGroup
}

func NewProgress(ctx context.Context, out io.Writer, g *cli.Globals, svc tuner.Service, view tuner.Study) *progress {
	p := &progress{out: out, terminal: cli.TerminalOf(out), g: g, began: time.Now(), study: view, already: Over(view), spent: view.Cost, done: make(chan struct{})}
	p.others, p.keeps = p.reader(ctx, svc), propose.Keeps(view.Spec.Proposer)
	p.held = func(refused error) string { return trials.HeldText(ctx, svc, view.Name, refused) }
	p.others(-1)
	if g.Quiet {
		p.terminal = nil
	}
	if p.terminal != nil {
		p.ticking.Go(p.tick)
	}
	return p
}

// reader returns a function that looks for a better trial among all except one of the
// trials that have ended since its last call. Other workers have trials too.
func (p *progress) reader(ctx context.Context, svc tuner.Service) func(but int) {
	name, first := p.study.Name, 0
	if p.study.Trials > trials.MaxRemarked {
		first = p.study.Trials
	}
	return func(but int) {
		if p.g.Quiet || len(p.study.Spec.Objectives) != 1 {
			return
		}
		behind := true // no trial before this one runs
		for t, err := range cli.AllTrials(ctx, svc, name, tuner.Filter{First: first}) {
			if err != nil {
				return // only a remark is lost
			}
			if behind = behind && t.State.Terminal(); behind {
				first = t.Number + 1
			}
			if t.Number != but && p.improves(t) {
				p.best = &t
			}
		}
	}
}

// Over is the number of ended trials of a study that count towards its limit.
func Over(s tuner.Study) int {
	return max(s.Counted-s.Counts[study.Queued]-s.Counts[study.Running], 0)
}

// tick redraws the bar every second, because it shows times.
func (p *progress) tick() {
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			p.mu.Lock()
			p.draw()
			p.mu.Unlock()
		case <-p.done:
			return
		}
	}
}

// End removes the bar.
func (p *progress) End() {
	close(p.done)
	p.ticking.Wait()
	if p.terminal != nil {
		fmt.Fprint(p.terminal, "\r\x1b[K")
	}
}

// Event shows an event.
func (p *progress) Event(e runner.Event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.running = e.Running
	switch e.Kind {
	case runner.Started:
		p.waiting, p.idle = tuner.OK, time.Time{}
		if p.g.Verbose > 0 {
			p.line("Trial %d started: %s%s", e.Trial.Number, e.Trial.Config.Short(), p.predicted(e))
		}
	case runner.Resumed:
		p.waiting, p.idle = tuner.OK, time.Time{}
		p.line("Trial %d continues: an earlier run left it.", e.Trial.Number)
	case runner.Ended:
		p.ended(e)
	case runner.Lost:
		p.line("Trial %d was given up: %v", e.Trial.Number, e.Err)
	case runner.Waiting, runner.Retrying:
		p.wait(e)
	case runner.Warning:
		p.line("warning: %v", e.Err)
	case runner.Remark:
		p.line("Trial %d: %v", e.Trial.Number, e.Err)
	}
	p.draw()
}

// wait writes once why nothing starts, unless the trials of this run are the reason.
func (p *progress) wait(e runner.Event) {
	code := tuner.CodeOf(e.Err)
	if p.waiting == code || code == tuner.NoneLeft && (e.Running > 0 || p.soon()) {
		return
	}
	p.waiting = code
	switch code {
	case tuner.NoneLeft:
		p.line("Waiting: %s", p.held(e.Err))
	case tuner.Paused:
		p.line("The study is paused. Waiting for tuner resume.")
	default:
		p.line("Trying again: %v", e.Err)
	}
}

// soon tells whether there has been nothing to hand out for less than a second. Another
// worker of this run may be about to take or to tell the trial that is left.
func (p *progress) soon() bool {
	if p.idle.IsZero() {
		p.idle = time.Now()
	}
	return time.Since(p.idle) < time.Second
}

func (p *progress) ended(e runner.Event) {
	p.others(e.Trial.Number)
	better := p.improves(e.Trial)
	if better {
		p.best = &e.Trial
	}
	if e.Study.Name != "" {
		p.study = e.Study
	}
	if p.terminal != nil && !better && e.Trial.State != study.Failed && p.g.Verbose == 0 {
		return // the bar shows enough
	}
	head, predicted, tail := fmt.Sprintf("Trial %d: %s", e.Trial.Number, p.outcome(e.Trial)), p.predicted(e), ""
	if e.Trial.State == study.Completed && !p.keeps(e.Trial.Outcome) {
		tail += "  breaks a constraint"
	}
	best, config := "", "  "+e.Trial.Config.Short()
	if better {
		tail += "  the best so far"
	} else if p.best != nil {
		best = "  best: " + trials.BestText(*p.best, p.study.Spec.Objectives[0])
	}
	if width := cli.TableWidth(p.out); p.g.Verbose == 0 && width > 0 { // tuner trials has all of it
		if e.Trial.State == study.Pruned { // the reason may be long
			head = cli.Short(cli.Clean(head), width)
		}
		room := width - utf8.RuneCountInString(cli.Clean(head+tail))
		fit := func(text string, least int) string {
			n := utf8.RuneCountInString(cli.Clean(text))
			if room < min(n, least) {
				return ""
			}
			text = cli.Short(text, room)
			room -= min(n, room)
			return text
		}
		predicted, best = fit(predicted, len(predicted)), fit(best, len(best))
		config = fit(config, 16)
	}
	p.line("%s%s%s%s%s", head, predicted, config, tail, best)
}

// outcome is the text of an outcome, with all metrics if the user asked for more.
func (p *progress) outcome(t study.Trial) string {
	o := t.Outcome
	if p.g.Verbose > 0 {
		return o.String()
	}
	var words []string
	for _, objective := range p.study.Spec.Objectives {
		if text := trials.MeanText(record.OfTrial(t), objective.Name); text != "" {
			words = append(words, objective.Name+"="+text)
		}
	}
	if t.State != study.Completed {
		words = append([]string{study.Outcome{State: o.State, Reason: o.Reason, Message: o.Message}.String()}, words...)
	}
	return strings.Join(words, " ")
}

// predicted is what the model predicted for a trial that this run got as a suggestion.
// The first one comes with an explanation.
func (p *progress) predicted(e runner.Event) string {
	s := e.Trial.Suggestion
	if n := len(p.study.Spec.Objectives); n != 1 || len(e.Noise) != n || len(s.Mean) != n || len(s.StdDev) != n {
		return ""
	}
	if !p.explained {
		p.explained = true
		p.line(trials.ExplainOutcome)
	}
	return fmt.Sprintf(" (predicted %s)", surrogate.OutcomeText(s.Mean[0], s.StdDev[0], e.Noise[0]))
}

// improves tells whether a trial is the best so far.
func (p *progress) improves(t study.Trial) bool {
	objectives := p.study.Spec.Objectives
	if len(objectives) != 1 || t.State != study.Completed || !p.keeps(t.Outcome) {
		return false
	}
	if p.best == nil {
		return true
	}
	return trials.MeasuredBetter(objectives[0], t, *p.best)
}

// line writes a line, above the bar if there is one.
func (p *progress) line(format string, args ...any) {
	if p.g.Quiet {
		return
	}
	text := cli.Clean(fmt.Sprintf(format, args...))
	if p.terminal != nil {
		fmt.Fprintf(p.terminal, "\r\x1b[K%s\n", text)
		return
	}
	fmt.Fprintln(p.out, text)
}

func (p *progress) draw() {
	if p.terminal == nil {
		return
	}
	fmt.Fprintf(p.terminal, "\r\x1b[K%s", cli.Short(p.bar(time.Since(p.began)), cli.OutputWidth(p.terminal)-1))
}

// bar is the text of the bar after so much time.
func (p *progress) bar(elapsed time.Duration) string {
	done, of := Over(p.study), p.study.Spec.MaxTrials
	var b strings.Builder
	if of > 0 {
		const cells = 24
		full := min(cells*done/of, cells)
		fmt.Fprintf(&b, "%s%s %d/%d", strings.Repeat("█", full), strings.Repeat("░", cells-full), done, of)
	} else {
		fmt.Fprintf(&b, "%d trials", done)
	}
	fmt.Fprintf(&b, "  %d running", p.running)
	b.WriteString("  " + elapsed.Round(time.Second).String())
	if mine := done - p.already; of > done && mine > 0 {
		left := time.Duration(float64(elapsed) / float64(mine) * float64(of-done))
		b.WriteString(", about " + left.Round(time.Second).String() + " left")
	} else if cost := p.study.Spec.MaxCost; of == 0 && cost > 0 {
		spent := min(p.study.Cost/cost, 1)
		fmt.Fprintf(&b, ", %.0f%% of the budget", 100*spent)
		if began := p.spent / cost; spent > began && spent < 1 {
			left := time.Duration(float64(elapsed) / (spent - began) * (1 - spent))
			b.WriteString(", about " + left.Round(time.Second).String() + " left")
		}
	}
	if p.best != nil { // last, as a terminal may be too narrow for it
		b.WriteString("  best " + trials.BestText(*p.best, p.study.Spec.Objectives[0]))
	}
	return b.String()
}
