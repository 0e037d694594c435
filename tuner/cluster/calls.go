package cluster

import (
	"context"
	"errors"
	"io"
	"iter"

	"github.com/bkbtuner/bkb/store"
	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/study"
	"github.com/bkbtuner/bkb/tuner/surrogate"
)

// CreateStudy implements [tuner.Service].
func (s *Service) CreateStudy(ctx context.Context, name string, c study.Create) (tuner.Created, error) {
	identified(&c.RequestID)
	return call(ctx, s, name, writes, func(ctx context.Context, n Node) (tuner.Created, error) { return n.CreateStudy(ctx, name, c) })
}

// Study implements [tuner.Service].
func (s *Service) Study(ctx context.Context, name string) (tuner.Study, error) {
	return call(ctx, s, name, reads, func(ctx context.Context, n Node) (tuner.Study, error) { return n.Study(ctx, name) })
}

// page is a part of a list.
type page[T any] struct {
	list []T
	more bool
}

// Studies implements [tuner.Service]. The local service reads them from the store.
func (s *Service) Studies(ctx context.Context, after string, limit int) ([]tuner.Study, bool, error) {
	p, err := here(ctx, s, reads, func(ctx context.Context, n Node) (p page[tuner.Study], err error) {
		p.list, p.more, err = n.Studies(ctx, after, limit)
		return p, err
	})
	return p.list, p.more, err
}

// DeleteStudy implements [tuner.Service].
func (s *Service) DeleteStudy(ctx context.Context, name string) error {
	sent := 0
	_, err := call(ctx, s, name, writes, func(ctx context.Context, n Node) (struct{}, error) {
		sent++
		return struct{}{}, n.DeleteStudy(ctx, name)
	})
	if sent > 1 && tuner.CodeOf(err) == tuner.NotFound {
		return nil // the first server deleted it, or another client
	}
	return err
}

// Pause implements [tuner.Service].
func (s *Service) Pause(ctx context.Context, name string, c study.Pause) (tuner.Study, error) {
	identified(&c.RequestID)
	return call(ctx, s, name, writes, func(ctx context.Context, n Node) (tuner.Study, error) { return n.Pause(ctx, name, c) })
}

// Resume implements [tuner.Service].
func (s *Service) Resume(ctx context.Context, name string, c study.Resume) (tuner.Study, error) {
	identified(&c.RequestID)
	return call(ctx, s, name, writes, func(ctx context.Context, n Node) (tuner.Study, error) { return n.Resume(ctx, name, c) })
}

// Finish implements [tuner.Service].
func (s *Service) Finish(ctx context.Context, name string, c study.Finish) (tuner.Study, error) {
	identified(&c.RequestID)
	return call(ctx, s, name, writes, func(ctx context.Context, n Node) (tuner.Study, error) { return n.Finish(ctx, name, c) })
}

// SetAttributes implements [tuner.Service].
func (s *Service) SetAttributes(ctx context.Context, name string, c study.SetAttributes) error {
	identified(&c.RequestID)
	_, err := call(ctx, s, name, writes, func(ctx context.Context, n Node) (struct{}, error) {
		return struct{}{}, n.SetAttributes(ctx, name, c)
	})
	return err
}

// Ask implements [tuner.Service].
func (s *Service) Ask(ctx context.Context, name string, c study.Ask) (tuner.Asked, error) {
	identified(&c.RequestID)
	return call(ctx, s, name, writes, func(ctx context.Context, n Node) (tuner.Asked, error) { return n.Ask(ctx, name, c) })
}

// Tell implements [tuner.Service].
func (s *Service) Tell(ctx context.Context, name string, c study.Tell) (tuner.Told, error) {
	identified(&c.RequestID)
	return call(ctx, s, name, writes, func(ctx context.Context, n Node) (tuner.Told, error) { return n.Tell(ctx, name, c) })
}

// Report implements [tuner.Service].
func (s *Service) Report(ctx context.Context, name string, c study.ReportValues) (tuner.Verdict, error) {
	identified(&c.RequestID)
	return call(ctx, s, name, writes, func(ctx context.Context, n Node) (tuner.Verdict, error) { return n.Report(ctx, name, c) })
}

// Heartbeat implements [tuner.Service].
func (s *Service) Heartbeat(ctx context.Context, name string, c study.Heartbeat) (tuner.Verdict, error) {
	return call(ctx, s, name, writes, func(ctx context.Context, n Node) (tuner.Verdict, error) { return n.Heartbeat(ctx, name, c) })
}

// Enqueue implements [tuner.Service].
func (s *Service) Enqueue(ctx context.Context, name string, c study.Enqueue) (study.Trial, error) {
	identified(&c.RequestID)
	return call(ctx, s, name, writes, func(ctx context.Context, n Node) (study.Trial, error) { return n.Enqueue(ctx, name, c) })
}

// Add implements [tuner.Service].
func (s *Service) Add(ctx context.Context, name string, c study.Add) (study.Trial, error) {
	identified(&c.RequestID)
	return call(ctx, s, name, writes, func(ctx context.Context, n Node) (study.Trial, error) { return n.Add(ctx, name, c) })
}

// AddAll implements [tuner.Adder].
func (s *Service) AddAll(ctx context.Context, name string, commands []study.Command) ([]int, error) {
	return call(ctx, s, name, writes, func(ctx context.Context, n Node) ([]int, error) { return n.AddAll(ctx, name, commands) })
}

// Trial implements [tuner.Service].
func (s *Service) Trial(ctx context.Context, name string, number int) (study.Trial, error) {
	return call(ctx, s, name, reads, func(ctx context.Context, n Node) (study.Trial, error) { return n.Trial(ctx, name, number) })
}

// Reports implements [tuner.Service].
func (s *Service) Reports(ctx context.Context, name string, number, first, limit int) ([]study.Report, bool, error) {
	p, err := call(ctx, s, name, reads, func(ctx context.Context, n Node) (p page[study.Report], err error) {
		p.list, p.more, err = n.Reports(ctx, name, number, first, limit)
		return p, err
	})
	return p.list, p.more, err
}

// Trials implements [tuner.Service].
func (s *Service) Trials(ctx context.Context, name string, f tuner.Filter) ([]study.Trial, bool, error) {
	p, err := call(ctx, s, name, reads, func(ctx context.Context, n Node) (p page[study.Trial], err error) {
		p.list, p.more, err = n.Trials(ctx, name, f)
		return p, err
	})
	return p.list, p.more, err
}

// Columns implements [tuner.Service].
func (s *Service) Columns(ctx context.Context, name string, q tuner.ColumnQuery) (tuner.Columns, error) {
	return call(ctx, s, name, reads, func(ctx context.Context, n Node) (tuner.Columns, error) { return n.Columns(ctx, name, q) })
}

// Best implements [tuner.Service].
func (s *Service) Best(ctx context.Context, name string) ([]study.Trial, error) {
	return call(ctx, s, name, reads, func(ctx context.Context, n Node) ([]study.Trial, error) { return n.Best(ctx, name) })
}

// Diagnose implements [tuner.Service].
func (s *Service) Diagnose(ctx context.Context, name string) (surrogate.Diagnosis, error) {
	return call(ctx, s, name, reads, func(ctx context.Context, n Node) (surrogate.Diagnosis, error) { return n.Diagnose(ctx, name) })
}

// Predict implements [tuner.Service].
func (s *Service) Predict(ctx context.Context, name string, q tuner.PredictQuery) (tuner.Predictions, error) {
	return call(ctx, s, name, reads, func(ctx context.Context, n Node) (tuner.Predictions, error) { return n.Predict(ctx, name, q) })
}

// Importance implements [tuner.Service].
func (s *Service) Importance(ctx context.Context, name string, q tuner.ImportanceQuery) (tuner.Importance, error) {
	return call(ctx, s, name, reads, func(ctx context.Context, n Node) (tuner.Importance, error) { return n.Importance(ctx, name, q) })
}

// Backup implements [tuner.Service].
func (s *Service) Backup(ctx context.Context, w io.Writer) error { return s.local.Backup(ctx, w) }

// Watch implements [tuner.Service]. A watch here follows the study to another server, and
// one there ends as unavailable when that server loses the study.
func (s *Service) Watch(ctx context.Context, name string, after study.Position) iter.Seq2[tuner.Happening, error] {
	return func(yield func(tuner.Happening, error) bool) {
		v, far := store.Server{}, false
		if !s.options.Forwarded(ctx) {
			v, far = s.place(name)
		}
		if !far {
			owner, over := s.watchHere(ctx, name, &after, yield)
			if over {
				return
			}
			if s.options.Forwarded(ctx) || owner.Server.Address == "" || owner.Server.ID == s.member.ID() {
				yield(tuner.Happening{}, owner)
				return
			}
			v = owner.Server
			s.learn(name, v)
		}
		_, err := there(ctx, s, v, name, func(ctx context.Context, n Node) (struct{}, error) {
			for h, err := range n.Watch(ctx, name, after) {
				if err != nil {
					return struct{}{}, err
				}
				if !yield(h, nil) {
					return struct{}{}, errEnough
				}
			}
			return struct{}{}, nil
		})
		switch code := tuner.CodeOf(err); {
		case err == nil || errors.Is(err, errEnough):
			return
		case code == tuner.Unavailable || code == tuner.Unknown:
			s.forget(name, v)
			err = unavailable("the server at %s, which has the study, ended the watch: %v", v.Address, err)
		}
		yield(tuner.Happening{}, err)
	}
}

// errEnough ends a loop whose body wants no more.
var errEnough = errors.New("the loop is over")

// watchHere watches a study at the local service. over is false if another server has
// it.
func (s *Service) watchHere(ctx context.Context, name string, after *study.Position, yield func(tuner.Happening, error) bool) (owner *store.FencedError, over bool) {
	if !s.member.Alive() {
		yield(tuner.Happening{}, errNotAlive)
		return nil, true
	}
	for h, err := range s.local.Watch(ctx, name, *after) {
		if errors.As(err, &owner) {
			return owner, false
		}
		if err == nil && !s.member.Alive() {
			h, err = tuner.Happening{}, errNotAlive
		}
		if !yield(h, err) || err != nil {
			return nil, true
		}
		*after = h.Position
	}
	return nil, true
}

// WatchStudies implements [tuner.Service]. The local service finds the changes that other
// servers made in the store.
func (s *Service) WatchStudies(ctx context.Context) iter.Seq2[tuner.StudyNews, error] {
	return func(yield func(tuner.StudyNews, error) bool) {
		for news, err := range s.local.WatchStudies(ctx) {
			if err == nil && !s.member.Alive() {
				news, err = tuner.StudyNews{}, errNotAlive
			}
			if !yield(news, err) || err != nil {
				return
			}
		}
	}
}
