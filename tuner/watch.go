package tuner

import (
	"context"
	"iter"

	"github.com/bkbtuner/bkb/store"
	"github.com/bkbtuner/bkb/tuner/study"
)

// Watch implements [Service].
func (t *Tuner) Watch(ctx context.Context, name string, after study.Position) iter.Seq2[Happening, error] {
	return func(yield func(Happening, error) bool) {
		for {
			n, err := t.news(ctx, name, after)
			if err == nil && n.view == nil {
				select {
				case <-n.advanced:
					continue
				case <-ctx.Done():
					err = ctx.Err()
				}
			}
			if err != nil {
				yield(Happening{}, err)
				return
			}
			for r, err := range t.store.Read(ctx, n.id, after+1) {
				if err != nil {
					yield(Happening{}, err)
					return
				}
				if r.Position > n.view.Position() {
					break // the view is older; next time
				}
				if !yield(happening(r, n.view), nil) {
					return
				}
				after = r.Position
			}
		}
	}
}

// news is what a watcher continues with: a view of the stored study if that is ahead of
// the watcher, else what to wait for.
type news struct {
	id       store.StudyID
	view     *study.View
	advanced <-chan struct{}
}

func (t *Tuner) news(ctx context.Context, name string, after study.Position) (n news, err error) {
	err = t.with(ctx, name, func(d *desk) (err error) {
		n.id = d.id
		n.view, n.advanced, err = d.log.since(ctx, after)
		return err
	})
	return n, err
}

// added returns the reports that an event added.
func added(e study.Event) []study.Report {
	switch b := e.Body.(type) {
	case study.Reported:
		return b.Reports
	case study.Added:
		return b.Reports
	default:
		return nil
	}
}

// happening describes a stored event.
func happening(r store.Record, v *study.View) Happening {
	h := Happening{Position: r.Position, Time: r.Event.Time, Caller: r.Event.Caller}
	h.Status, _ = v.Status()
	switch r.Event.Body.(type) {
	case study.Created:
		h.Kind = "created"
	case study.Paused:
		h.Kind = "paused"
	case study.Resumed:
		h.Kind = "resumed"
	case study.Finished:
		h.Kind = "finished"
	case study.Enqueued:
		h.Kind = "enqueued"
	case study.Started:
		h.Kind = "started"
	case study.Extended:
		h.Kind = "extended"
	case study.Reported:
		h.Kind = "reported"
	case study.Expired:
		h.Kind = "expired"
	case study.Told:
		h.Kind = "told"
	case study.ToldLate:
		h.Kind = "told-late"
	case study.Added:
		h.Kind = "added"
	case study.Attributed:
		h.Kind = "attributed"
	case study.Anchored:
		h.Kind = "anchored"
	}
	if n, ok := r.Event.Trial(); ok {
		t, _ := v.Trial(n)
		t.Reports = added(r.Event)
		h.Trial = &t
	}
	return h
}
