package tuner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/bkbtuner/bkb/store"
	"github.com/bkbtuner/bkb/tuner/propose"
	"github.com/bkbtuner/bkb/tuner/study"
)

// proposer makes the trials of one study. One goroutine, run, makes them, one ask after
// another, so that a suggestion is made for the number that it gets. A long-lived Tuner
// prepares the next suggestion ahead, in the background.
//
// It decides on the log and has the clock settle it; neither calls back. The log's lock
// guards worked. While the study's [suggester] is at work, the lock is not held.
type proposer struct {
	ctx     context.Context // ends when the study is dropped from memory
	name    string
	log     *eventLog
	clock   *clock
	turns   *turns  // of all studies, to prepare
	shares  *shares // of all studies, for asks
	share   share
	work    *sync.WaitGroup // the Tuner's, for what runs in the background
	options Options

	asks       chan func() // for run
	worked     bool        // a worker has called
	preparing  atomic.Bool // a suggestion, in the background, or waiting for the turn
	consulting atomic.Int32
}

// errBusy refuses an ask because too many wait already.
var errBusy = errors.New("too many asks are waiting for this study; try again later")

// errPart says why an ask that was refused may have had an effect: the lock is not held
// while the proposer is at work, and the trials that were handed out before may be
// stored by then.
var errPart = errors.New("a part of what was asked for has been handed out")

// MaxAuto is the most trials that an ask with [AutoCount] gets.
const MaxAuto = 64

func newProposer(ctx context.Context, name string, l *eventLog, c *clock, t *Tuner) *proposer {
	return &proposer{
		ctx: ctx, name: name, log: l, clock: c, turns: t.turns, shares: t.shares, work: &t.work, options: t.options,
		asks: make(chan func(), 4096),
	}
}

// run works through the asks, one at a time, until the study is dropped from memory.
func (p *proposer) run() {
	for {
		select {
		case ask := <-p.asks:
			ask()
		case <-p.ctx.Done():
			return
		}
	}
}

// inTurn runs f on run's goroutine, where every command runs that makes a trial: the
// number that a suggestion was made for is still the next one when it is done. An error
// means that f has not run and will not, or, if it is an unknown outcome, that f is at
// work and must not share memory with the caller.
func (p *proposer) inTurn(ctx context.Context, f func()) error {
	defer p.turns.asking(p.log.suggester().stuck.Load())()
	var taken atomic.Bool // by run, or by the caller that gives up
	done := make(chan struct{})
	job := func() {
		if taken.CompareAndSwap(false, true) {
			f()
		}
		close(done)
	}
	select {
	case p.asks <- job:
	default:
		return errBusy
	}
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		if taken.CompareAndSwap(false, true) {
			return ctx.Err()
		}
		return fmt.Errorf("%w: %w", store.ErrUnknownOutcome, ctx.Err())
	case <-p.ctx.Done():
		if taken.CompareAndSwap(false, true) {
			return errRetired
		}
		<-done // it is at work and ends soon
		return nil
	}
}

// answer is what an ask is given.
type answer struct {
	reply         study.Reply
	trials        []study.Trial
	usefulWorkers int
	warnings      []string
	noise         []float64
	first         *batch // has the first event that the ask made, nil if it made none
}

// ask hands out trials, in turn, and waits until they are stored.
func (p *proposer) ask(ctx context.Context, c study.Ask) (Asked, error) {
	var a answer
	var b *batch
	var refused error
	err := p.inTurn(ctx, func() {
		c := c
		if c.Count == AutoCount {
			if c.Count, refused = p.autoCount(ctx, c); refused != nil {
				return
			}
		}
		a, b, refused = p.answer(ctx, c)
	})
	if err != nil {
		return Asked{}, err
	}
	if err := p.log.wait(ctx, b); err != nil && a.first.stored() {
		return Asked{}, fmt.Errorf("%w: %w: %v", store.ErrUnknownOutcome, errPart, err)
	} else if err != nil {
		return Asked{}, err
	}
	if refused != nil && len(a.reply.Trials) > 0 { // some were handed out: the caller may ask for them again
		return Asked{}, fmt.Errorf("%w: %w", store.ErrUnknownOutcome, refused)
	} else if refused != nil {
		return Asked{}, refused
	}
	return Asked{a.trials, a.usefulWorkers, a.warnings, a.noise}, nil
}

// answer decides an ask, on run's goroutine. The caller must wait for the batch, also
// beside an error.
func (p *proposer) answer(ctx context.Context, c study.Ask) (a answer, b *batch, err error) {
	p.log.mu.Lock()
	defer p.log.mu.Unlock()
	err = p.handOut(ctx, c, &a)
	if errors.Is(err, errDiscarded) {
		if c.RequestID == "" && a.first.stored() { // the same ask again would hand out other trials
			err = fmt.Errorf("%w: %w", store.ErrUnknownOutcome, errPart)
		}
		return answer{}, nil, err
	}
	a.trials = p.log.live.handedOut(a.reply, c.Worker)
	return a, p.log.barrier(), err
}

// handOut fills in an answer: with queued trials first, then with new suggestions. The
// log's lock is held, except while the proposer is at work.
func (p *proposer) handOut(ctx context.Context, c study.Ask, a *answer) error {
	p.clock.settle(p.log)
	s := p.log.live.study
	before := s.Position()
	reply, err := p.decideForWorker(ctx, c)
	if err != nil {
		return err
	}
	a.reply = reply
	if s.Position() > before {
		a.first = p.log.last()
	}
	if a.reply.Missing <= 0 {
		return nil
	}
	made, err := p.propose(ctx, a.reply.Missing)
	switch {
	case err == nil && made.Converged && len(a.reply.Trials) == 0:
		return p.converged(made.Gap)
	case errors.Is(err, propose.ErrExhausted):
		return p.exhausted(a.reply)
	case err != nil:
		return err
	}
	a.usefulWorkers, a.warnings, a.noise = made.UsefulWorkers, made.Warnings, made.Noise
	if made.Capped > 0 {
		a.warnings = append(slices.Clip(a.warnings), fmt.Sprintf("the model rests on %d inducing points, the most that the proposer's option cap allows", made.Capped))
	}
	whole := len(a.reply.Trials) + len(made.Suggestions)
	for _, suggestion := range made.Suggestions {
		reply, err := p.log.decide(ctx, study.Start{Ask: c, Trial: s.Trials(), Answer: whole, Suggestion: suggestion})
		if err != nil {
			return err
		}
		if a.first == nil {
			a.first = p.log.last()
		}
		a.reply.Trials = append(a.reply.Trials, reply.Trials...)
		a.reply.Epochs = append(a.reply.Epochs, reply.Epochs...)
	}
	return nil
}

// decideForWorker decides a command of a worker, which will ask for more trials: the
// first one after the study was loaded has the next suggestion prepared. The log's lock
// is held.
func (p *proposer) decideForWorker(ctx context.Context, c study.Command) (study.Reply, error) {
	reply, err := p.log.decide(ctx, c)
	if err == nil && !p.worked {
		p.worked = true
		p.prepare()
	}
	return reply, err
}

// propose has n suggestions made, after the model event that is due, if one is. The
// log's lock is held, but not while the proposer is at work; errDiscarded says that the
// live study is another one since.
func (p *proposer) propose(ctx context.Context, n int) (made propose.Proposal, err error) {
	s, g := p.log.live.study, p.log.live.suggester
	defer p.turns.asking(g.stuck.Load())() // the ask's own count may have ended with its context
	view := s.Snapshot()
	var anchor study.Anchor
	var due bool
	var modelErr error
	done := func() {}
	defer func() { done() }()
	discarded := p.log.unlocked(func() {
		if done, modelErr = p.takeShare(ctx, g); modelErr == nil {
			anchor, due, modelErr = g.anchor(ctx, view)
		}
	})
	if discarded != nil {
		return made, discarded
	}
	if modelErr == nil && due {
		anchor.Effective = s.Position() + 1
		if _, err := p.log.decide(p.ctx, anchor); err != nil {
			return made, err
		}
		view = s.Snapshot()
	}
	discarded = p.log.unlocked(func() { made, err = g.suggest(ctx, view, n, modelErr) })
	if discarded != nil {
		return made, discarded
	}
	if due { // not at every ask
		for _, text := range made.Warnings {
			p.options.Logger.Warn(text, "study", p.name)
		}
	}
	return made, err
}

// takeShare waits for the study's turn to make suggestions with a model; without one
// there is nothing to wait for.
func (p *proposer) takeShare(ctx context.Context, g *suggester) (done func(), err error) {
	if _, models := g.proposer.(propose.Anchorer); !models {
		return func() {}, nil
	}
	done, err = p.shares.take(ctx, &p.share, p.options.ProposeTimeout)
	if err != nil {
		done = func() {}
	}
	return done, err
}

// converged ends the study: no configuration is expected to improve on the best by more
// than the gap at which the study is to stop. The log's lock is held.
func (p *proposer) converged(gap float64) error {
	return p.finish(study.Finish{
		Reason: study.FinishedGap,
		Detail: fmt.Sprintf("no configuration is expected to be better by more than %.3g", gap),
	})
}

// exhausted ends an ask for which there is nothing more to suggest, and the study too if
// no trial is left that could be handed out again. The log's lock is held.
func (p *proposer) exhausted(reply study.Reply) error {
	if len(reply.Trials) > 0 {
		return nil
	}
	if err := p.log.live.exhausted(); err != nil {
		return err
	}
	return p.finish(study.Finish{Reason: study.FinishedExhausted})
}

// finish ends the study and returns the error of an ask for it. The log's lock is held.
func (p *proposer) finish(c study.Finish) error {
	if _, err := p.log.decide(p.ctx, c); err != nil {
		return err
	}
	_, how := p.log.live.study.Status()
	return &study.FinishedError{Reason: how.Reason, Detail: how.Detail}
}

// autoCount returns how many more trials are useful now, at least one. For a request
// that was answered before it returns the number of that answer.
func (p *proposer) autoCount(ctx context.Context, c study.Ask) (int, error) {
	p.log.mu.Lock()
	defer p.log.mu.Unlock()
	if n, ok := p.log.live.study.Answered(c.RequestID); ok {
		return n, nil
	}
	v, err := p.log.current()
	if err != nil {
		return 0, err
	}
	if status, _ := v.study.Status(); status != study.StatusActive {
		return 1, nil // the ask will say why not
	}
	n, err := p.useful(ctx, 1)
	if err != nil || n == 1 {
		return n, err
	}
	// One suggestion tells how many of its like are useful. Those that the ask will get
	// may be of another.
	m, err := p.useful(ctx, n)
	return min(n, m), err
}

// useful returns how many more trials are useful now by what n suggestions tell, at
// least one. The log's lock is held, but not while the proposer is at work.
func (p *proposer) useful(ctx context.Context, n int) (int, error) {
	made, err := p.propose(ctx, n)
	if errors.Is(err, propose.ErrExhausted) || errors.Is(err, errDiscarded) {
		return 1, nil
	}
	return min(max(made.UsefulWorkers-p.log.live.study.Count(study.Running), 1), MaxAuto), err
}
