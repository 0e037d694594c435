package actor

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/bkbtuner/bkb/store"
	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/propose"
	"github.com/bkbtuner/bkb/tuner/study"
)

// queue makes the trials of one study. Asks take turns, so that the number of a
// suggestion's trial is known in advance. A long-lived engine also prepares the next
// suggestion in the background.
//
// The queue decides on the log, which does not call back.
// The log's lock guards worked. It is not held while the study's [suggester] works.
type queue struct {
	log   *eventLog
	share share // of the processors
	env   *Environment

	turn       chan struct{} // holds a token while a command makes trials
	waiting    atomic.Int32  // commands that make trials, or wait for their turn
	worked     bool          // a worker has called
	preparing  atomic.Bool   // a suggestion is being prepared, or waits for its turn
	consulting atomic.Int32

	recommending chan struct{}  // holds a token while a call compares trials
	recommended  recommendation // the last one, guarded by the token
}

// errPart explains why a refused ask may have had an effect. The lock is not held while
// the proposer works, so the trials handed out before may have been stored.
var errPart = errors.New("a part of the trials has been handed out")

func newQueue(l *eventLog, env *Environment) *queue {
	return &queue{log: l, env: env, turn: make(chan struct{}, 1), recommending: make(chan struct{}, 1)}
}

// mostWaiting is how many commands that make trials wait for their turn.
const mostWaiting = 4096

// inTurn runs f, which makes trials, after those that came before. The number that a
// suggestion was made for thus stays the next one. An error means that f has not run.
func (q *queue) inTurn(ctx context.Context, f func()) error {
	defer q.env.Processors.asking(q.log.suggester().stuck.Load())()
	defer q.waiting.Add(-1)
	if q.waiting.Add(1) > mostWaiting {
		return tuner.ErrBusy
	}
	select {
	case q.turn <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	case <-q.log.ctx.Done():
		return ErrRetired
	}
	defer func() { <-q.turn }()
	f()
	return nil
}

// answer is the answer to an ask.
type answer struct {
	tuner.Asked
	reply study.Reply
	first *batch // with the first event that the ask made, or nil
}

// ask hands out trials in turn and waits until they are stored.
func (q *queue) ask(ctx context.Context, c study.Ask) (tuner.Asked, error) {
	var a answer
	var b *batch
	var refused error
	err := q.inTurn(ctx, func() {
		c := c
		if c.Count == tuner.AutoCount {
			if c.Count, refused = q.autoCount(ctx, c); refused != nil {
				return
			}
		}
		a, b, refused = q.answer(ctx, c)
	})
	if err != nil {
		return tuner.Asked{}, err
	}
	err = q.log.wait(ctx, b)
	switch {
	case err != nil && a.first.stored():
		err = fmt.Errorf("%w: %w: %v", store.ErrUnknownOutcome, errPart, err)
	case err == nil && refused != nil && len(a.reply.Trials) > 0: // some were handed out, and a retry returns them
		err = fmt.Errorf("%w: %w", store.ErrUnknownOutcome, refused)
	case err == nil:
		err = refused
	}
	if err != nil {
		return tuner.Asked{}, err
	}
	return a.Asked, nil
}

// answer decides an ask in its turn. The caller must wait for the batch even
// after an error.
func (q *queue) answer(ctx context.Context, c study.Ask) (a answer, b *batch, err error) {
	q.log.mu.Lock()
	defer q.log.mu.Unlock()
	err = q.handOut(ctx, c, &a)
	if errors.Is(err, ErrDiscarded) {
		if c.RequestID == "" && a.first.stored() { // a retry would hand out other trials
			err = fmt.Errorf("%w: %w", store.ErrUnknownOutcome, errPart)
		}
		return answer{}, nil, err
	}
	a.Trials = q.log.state.handedOut(a.reply, c.Worker)
	return a, q.log.barrier(), err
}

// handOut fills an answer with queued trials and then with new suggestions. The log's
// lock is held, except while the proposer works.
func (q *queue) handOut(ctx context.Context, c study.Ask, a *answer) error {
	q.log.settle()
	s := q.log.state.study
	before := s.Position()
	reply, err := q.decideForWorker(ctx, c)
	if err != nil {
		return err
	}
	a.reply = reply
	if s.Position() > before {
		a.first = q.log.last()
	}
	if a.reply.Missing <= 0 {
		return nil
	}
	made, err := q.propose(ctx, a.reply.Missing)
	switch {
	case err == nil && made.Converged && len(a.reply.Trials) == 0:
		return q.finish(study.Finish{
			Reason: study.FinishedGap,
			Detail: fmt.Sprintf("no configuration is expected to be better by more than %.3g", made.Gap),
		})
	case errors.Is(err, propose.ErrExhausted) && len(a.reply.Trials) > 0:
		return nil
	case errors.Is(err, propose.ErrExhausted):
		if err := q.log.state.exhausted(); err != nil {
			return err
		}
		return q.finish(study.Finish{Reason: study.FinishedExhausted})
	case err != nil:
		return err
	}
	a.UsefulWorkers, a.Warnings, a.Noise = made.UsefulWorkers, made.Warnings, made.Noise
	whole := len(a.reply.Trials) + len(made.Suggestions)
	for _, suggestion := range made.Suggestions {
		reply, err := q.log.decide(ctx, study.Start{Ask: c, Trial: s.Trials(), Answer: whole, Suggestion: suggestion})
		if err != nil {
			return err
		}
		if a.first == nil {
			a.first = q.log.last()
		}
		a.reply.Trials = append(a.reply.Trials, reply.Trials...)
		a.reply.Epochs = append(a.reply.Epochs, reply.Epochs...)
	}
	return nil
}

// decideForWorker decides a command of a worker, which is likely to ask for more
// trials. The first such command after the study was loaded starts a preparation. The
// log's lock is held.
func (q *queue) decideForWorker(ctx context.Context, c study.Command) (study.Reply, error) {
	reply, err := q.log.decide(ctx, c)
	if err == nil && !q.worked {
		q.worked = true
		q.prepare()
	}
	return reply, err
}

// propose makes n suggestions, and before them the model event if one is due. The log's
// lock is held, except while the proposer works. The error is ErrDiscarded if the live
// study was replaced meanwhile.
func (q *queue) propose(ctx context.Context, n int) (made propose.Proposal, err error) {
	s, g := q.log.state.study, q.log.state.suggester
	defer q.env.Processors.asking(g.stuck.Load())() // the ask's own count may have ended with its context
	view := s.Snapshot()
	var anchor *study.Anchor
	var modelErr error
	done := func() {}
	defer func() { done() }()
	discarded := q.log.unlocked(func() {
		if done, modelErr = q.takeShare(ctx, g); modelErr == nil {
			anchor, modelErr = g.anchor(ctx, view)
		}
	})
	if discarded != nil {
		return made, discarded
	}
	if anchor != nil {
		anchor.Effective = s.Position() + 1
		if _, err := q.log.decide(q.log.ctx, *anchor); err != nil {
			return made, err
		}
		view = s.Snapshot()
	}
	discarded = q.log.unlocked(func() { made, err = g.suggest(ctx, view, n, modelErr) })
	if discarded != nil {
		return made, discarded
	}
	if anchor != nil { // rather than at every ask
		for _, text := range made.Warnings {
			q.env.Logger.Info(text, "study", q.log.name) // the worker that asked has it too
		}
	}
	return made, err
}

// takeShare waits for the study's share of processor time. A proposer without a model
// does not wait.
func (q *queue) takeShare(ctx context.Context, g *suggester) (done func(), err error) {
	if !g.models() {
		return func() {}, nil
	}
	done, err = q.env.Processors.take(ctx, &q.share, q.env.ProposeTimeout)
	if err != nil {
		done = func() {}
	}
	return done, err
}

// finish finishes the study and returns the error for the ask. The log's lock is held.
func (q *queue) finish(c study.Finish) error {
	if _, err := q.log.decide(q.log.ctx, c); err != nil {
		return err
	}
	_, how := q.log.state.study.Status()
	return &study.FinishedError{Reason: how.Reason, Detail: how.Detail}
}

// autoCount returns how many more trials are useful now, at least one. A repeated
// request gets the number of its first answer.
func (q *queue) autoCount(ctx context.Context, c study.Ask) (int, error) {
	q.log.mu.Lock()
	defer q.log.mu.Unlock()
	if n, ok := q.log.state.study.Answered(c.RequestID); ok {
		return n, nil
	}
	v, err := q.log.current()
	if err != nil {
		return 0, err
	}
	if status, _ := v.study.Status(); status != study.StatusActive {
		return 1, nil // the ask returns the error
	}
	n, err := q.useful(ctx, 1)
	if err != nil || n == 1 {
		return n, err
	}
	// One suggestion shows how many like it are useful. The suggestions for the ask may
	// differ from it.
	m, err := q.useful(ctx, n)
	return min(n, m), err
}

// useful returns how many more trials are useful now according to n suggestions, at
// least one. The log's lock is held, except while the proposer works.
func (q *queue) useful(ctx context.Context, n int) (int, error) {
	made, err := q.propose(ctx, n)
	if errors.Is(err, propose.ErrExhausted) || errors.Is(err, ErrDiscarded) {
		return 1, nil
	}
	return min(max(made.UsefulWorkers-q.log.state.study.Count(study.Running), 1), tuner.MaxAuto), err
}

// make decides a command that makes a trial and waits until it is stored. It takes
// turns with asks.
func (q *queue) make(ctx context.Context, c study.Command) (study.Trial, error) {
	var trial study.Trial
	var b *batch
	var refused error
	err := q.inTurn(ctx, func() {
		b, refused = q.log.stage(func(v *state) error {
			reply, err := q.log.decide(ctx, c)
			if err == nil {
				trial, _ = v.study.Trial(reply.Trials[0])
				trial = trial.WithoutReports()
			}
			return err
		})
	})
	if err != nil {
		return study.Trial{}, err
	}
	if err := q.log.wait(ctx, b); err != nil {
		return study.Trial{}, err
	}
	return trial, refused
}

// makeAll decides commands that make trials, up to the first refusal, and waits until
// they are stored. It takes turns with asks. part reports that some were stored before
// the store refused the rest.
func (q *queue) makeAll(ctx context.Context, commands []study.Command) (numbers []int, part bool, err error) {
	var made []int
	var first, b *batch
	var refused error
	err = q.inTurn(ctx, func() {
		b, refused = q.log.stage(func(v *state) (err error) {
			made, first, err = q.decideAll(ctx, v, commands)
			return err
		})
	})
	if err != nil {
		return nil, false, err
	}
	if err := q.log.wait(ctx, b); err != nil {
		return nil, first.stored(), err
	}
	if refused != nil {
		return nil, false, refused
	}
	return made, false, nil
}

// decideAll decides the commands up to the first refusal. first is the batch of the
// first event that they made, or nil if they made none. The log's lock is held.
func (q *queue) decideAll(ctx context.Context, v *state, commands []study.Command) (numbers []int, first *batch, refused error) {
	for i, c := range commands {
		before := v.study.Position()
		reply, err := q.log.decide(ctx, c)
		if _, broken := q.log.current(); err != nil && broken == nil {
			err = &tuner.CommandError{Index: i, Err: err}
		}
		if err != nil {
			return numbers, first, err
		}
		if first == nil && v.study.Position() > before {
			first = q.log.last()
		}
		numbers = append(numbers, reply.Trials[0])
	}
	return numbers, first, nil
}
