package server

import (
	"context"
	"fmt"
	"slices"

	"github.com/bkbtuner/bkb/internal/planted"
	"github.com/bkbtuner/bkb/tuner/study"
	"github.com/bkbtuner/bkb/tuner/wire"
)

// Worker names are bound to tokens in the token file. A name that is bound belongs to
// its tokens: no other worker asks under it, nor reports or tells a trial that it
// runs. A token with names works under these only. Admins may do all of it.

// holds tells whether a caller may act for a worker of this name.
func (s *Server) holds(id identity, worker string) bool {
	switch {
	case id.scope.Role == RoleAdmin, planted.Is(planted.NameUnchecked):
		return true
	case len(id.workers) > 0:
		return slices.Contains(id.workers, worker)
	case s.auth.tokens == nil:
		return true
	default:
		f := s.auth.tokens.get()
		return !f.bound[worker]
	}
}

// restricted tells whether there is anything that the caller must not do by name.
func (s *Server) restricted(id identity) bool {
	if id.scope.Role == RoleAdmin || s.auth.tokens == nil {
		return false
	}
	f := s.auth.tokens.get()
	return len(id.workers) > 0 || len(f.bound) > 0
}

// checkAsk refuses an ask under the name of another token. A token with one name
// asks under it if it gives none; then it gets new trials, as an unnamed worker does.
func (s *Server) checkAsk(ctx context.Context, c *study.Ask) error {
	id, _ := identityOf(ctx)
	if c.Worker == "" && len(id.workers) == 1 && id.scope.Role != RoleAdmin {
		c.Worker, c.New = id.workers[0], true
	}
	if s.holds(id, c.Worker) {
		return nil
	}
	s.metrics.authFailures.WithLabelValues("name").Inc()
	if len(id.workers) > 0 {
		return wire.Denied(true, fmt.Sprintf("this token works under the names %q only, not as %q", id.workers, c.Worker)).Err()
	}
	return wire.Denied(true, fmt.Sprintf("the worker name %q is bound to another token", c.Worker)).Err()
}

// checkHolder refuses to act on a trial that a worker of another token runs or ran
// last. It pins epoch 0 to the lease that it looked at. A result under an earlier
// lease passes: it does not become the trial's.
func (h *handlers) checkHolder(ctx context.Context, name string, number int, epoch *int) error {
	s := h.server
	id, _ := identityOf(ctx)
	if !s.restricted(id) {
		return nil
	}
	t, err := h.service.Trial(ctx, name, number)
	if err != nil {
		return err
	}
	if t.Epoch == 0 || epoch != nil && *epoch != 0 && *epoch < t.Epoch {
		return nil
	}
	if !s.holds(id, t.Worker) {
		s.metrics.authFailures.WithLabelValues("name").Inc()
		return wire.Denied(true, fmt.Sprintf("trial %d is held by the worker %q, whose name this token may not use", number, t.Worker)).Err()
	}
	if epoch != nil && *epoch == 0 {
		*epoch = t.Epoch
	}
	return nil
}
