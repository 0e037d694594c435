package cluster

import (
	"context"
	"errors"
	"io"
	"iter"

	"github.com/bkbtuner/bkb/store"
	"github.com/bkbtuner/bkb/tuner"
)

// Studies implements [tuner.Service]. The local service reads them from the store.
func (s *Service) Studies(ctx context.Context, after string, limit int) (list []tuner.Study, more bool, err error) {
	err = s.here(ctx, reads, func(ctx context.Context, n tuner.Service) (err error) {
		list, more, err = n.Studies(ctx, after, limit)
		return err
	})
	if err != nil {
		return nil, false, err
	}
	return list, more, nil
}

func (s *Service) DeleteStudy(ctx context.Context, name string) error {
	sent := 0
	err := s.call(ctx, name, writes, func(ctx context.Context, n tuner.Service) error {
		sent++
		return n.DeleteStudy(ctx, name)
	})
	if sent > 1 && tuner.CodeOf(err) == tuner.NotFound {
		return nil // the first server deleted it, or another client
	}
	return err
}

func (s *Service) Backup(ctx context.Context, w io.Writer) error { return s.local.Backup(ctx, w) }

// Watch implements [tuner.Service]. A watch here follows the study to another server, and
// one there ends as unavailable when that server loses the study.
func (s *Service) Watch(ctx context.Context, name string, from tuner.From) iter.Seq2[tuner.Event, error] {
	return func(yield func(tuner.Event, error) bool) {
		w := from
		v, far := store.Server{}, false
		if !s.options.Forwarded(ctx) {
			v, far = s.place(name)
		}
		if !far {
			owner, over := s.watchHere(ctx, name, &w, yield)
			if over {
				return
			}
			if s.options.Forwarded(ctx) || owner.Server.Address == "" || owner.Server.ID == s.member.ID() {
				yield(tuner.Event{}, owner)
				return
			}
			v = owner.Server
			s.learn(name, v)
		}
		err := s.there(ctx, v, name, func(ctx context.Context, n tuner.Service) error {
			for h, err := range n.Watch(ctx, name, w) {
				if err != nil {
					return err
				}
				if !w.Yield(yield, h, nil) {
					return errEnough
				}
			}
			return nil
		})
		switch code := tuner.CodeOf(err); {
		case err == nil || errors.Is(err, errEnough):
			return
		case code == tuner.Unavailable || code == tuner.Unknown:
			s.forget(name, v)
			err = unavailable("the server at %s, which has the study, ended the watch: %v", v.Address, err)
		}
		yield(tuner.Event{}, err)
	}
}

// errEnough ends a loop whose body wants no more.
var errEnough = errors.New("the loop is over")

// watchHere watches a study at the local service. over is false if another server has it.
func (s *Service) watchHere(ctx context.Context, name string, w *tuner.From, yield func(tuner.Event, error) bool) (owner *store.FencedError, over bool) {
	if !s.member.Alive() {
		yield(tuner.Event{}, errNotAlive)
		return nil, true
	}
	for h, err := range s.local.Watch(ctx, name, *w) {
		if errors.As(err, &owner) {
			return owner, false
		}
		if err == nil && !s.member.Alive() {
			h, err = tuner.Event{}, errNotAlive
		}
		if !w.Yield(yield, h, err) {
			return nil, true
		}
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
