package engine

import (
	"context"
	"iter"

	"github.com/bkbtuner/bkb/store"
	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/engine/actor"
	"github.com/bkbtuner/bkb/tuner/engine/view"
	"github.com/bkbtuner/bkb/tuner/memlimit"
	"github.com/bkbtuner/bkb/tuner/study"
)

// Watch implements [tuner.Service].
func (t *Engine) Watch(ctx context.Context, name string, from tuner.From) iter.Seq2[tuner.Event, error] {
	return func(yield func(tuner.Event, error) bool) {
		w := from
		for {
			n, err := t.news(ctx, name, &w)
			if err == nil && n.view == nil {
				select {
				case <-n.advanced:
					continue
				case <-ctx.Done():
					err = ctx.Err()
				}
			}
			if err != nil {
				yield(tuner.Event{}, err)
				return
			}
			more, err := func() (bool, error) {
				batch, leave, err := t.batch(ctx, n, w.After)
				defer leave() // also after a panic of the caller
				for _, h := range batch {
					if !w.Yield(yield, h, nil) {
						return false, nil
					}
				}
				return true, err
			}()
			if !more {
				return
			}
			if err != nil {
				yield(tuner.Event{}, err)
				return
			}
		}
	}
}

const (
	// watchBatch is about the most bytes of events that a watch reads at once.
	watchBatch = 64 << 10
	// watchRoom is the room in memory for reading them.
	watchRoom = 1 << 20
	// watchInflation is about how many bytes of memory a byte of an event takes on its
	// way to a client.
	watchInflation = 16
)

// batch reads the next events for a watch once there is room for them in memory. Unless
// an error follows, it returns at least one event. leave frees the room. Many watches
// wake at once, so each waits for its turn to read.
func (t *Engine) batch(ctx context.Context, n news, after study.Position) (batch []tuner.Event, leave func(), err error) {
	if leave, err = t.options.Memory.Await(ctx, watchRoom); err != nil {
		return nil, func() {}, err
	}
	size := 0
	for r, err := range t.store.Read(ctx, n.id, after+1) {
		if err != nil {
			return batch, leave, err
		}
		if r.Position > n.view.Position() {
			break // the view is older than this event
		}
		h := view.Event(n.id, r, n.view)
		next := view.SizeOfEvent(h)
		if size > 0 && size+next > watchBatch {
			break
		}
		batch, size = append(batch, h), size+next
	}
	leave()
	if size <= watchBatch {
		return batch, func() {}, nil
	}
	if leave, ok := t.options.Memory.Enter(int64(size)*watchInflation, memlimit.ShareWatch); ok {
		return batch, leave, nil
	}
	batch = nil // read again when there is room to send it
	if leave, err = t.options.Memory.Await(ctx, int64(size)*watchInflation); err != nil {
		return nil, func() {}, err
	}
	for r, err := range t.store.Read(ctx, n.id, after+1) {
		if err != nil {
			return nil, leave, err
		}
		return []tuner.Event{view.Event(n.id, r, n.view)}, leave, nil
	}
	return nil, leave, nil
}

// news is the next step of a watcher. It is a view of the stored study if that is ahead
// of the watcher, or otherwise a channel to wait for.
type news struct {
	id       store.StudyID
	view     *study.View
	advanced <-chan struct{}
	end      study.Position // that the engine knows
}

func (t *Engine) news(ctx context.Context, name string, from *tuner.From) (n news, err error) {
	err = t.with(ctx, name, func(a *actor.Actor) (err error) {
		n.id = a.ID()
		n.view, n.advanced, n.end, err = a.Since(ctx, from.After)
		return err
	})
	if err == nil {
		err = from.Of(n.id)
	}
	if err != nil || n.end >= from.After {
		return n, err
	}
	info, err := t.store.Stat(ctx, n.id) // another writer of the store may be ahead
	if err == nil && info.Head < from.After {
		err = from.PastEnd(info.Head)
	}
	return n, err
}
