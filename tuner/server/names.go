package server

import (
	"context"
	"fmt"
	"slices"

	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/study"
)

// A worker name belongs to the tokens that the token file binds it to. A name that is
// not bound belongs, in each study, to a worker token or certificate that works under
// it, see [Server.owner]. Only its owner asks under it. A lease belongs to the worker
// that started it, or else to one that it was handed to later, to the owner of its
// name, or to the admin who started it. Only its owner reports or tells the trial under it, and gets it
// back. Those whose token was revoked or may no longer work for the study own nothing.
// Admins may act for all workers, and never own a name.

// withCaller adds the caller to the context of a call to the service.
func (s *Server) withCaller(ctx context.Context) context.Context {
	id, _ := identityOf(ctx)
	if s.auth.open {
		return ctx
	}
	c := tuner.Caller{Name: id.name}
	if id.scope.Role != RoleAdmin {
		c.Permit = func(a tuner.Act) error { return s.permit(id, a) }
	}
	return tuner.WithCaller(ctx, c)
}

// permit refuses to act for a worker of another token or certificate.
func (s *Server) permit(id identity, a tuner.Act) error {
	f := tokenFile{} // as it is when the act is decided
	if s.auth.tokens != nil {
		f = s.auth.tokens.get()
	}
	why := ""
	switch {
	case slices.Contains(id.workers, a.Worker):
		return nil
	case len(id.workers) > 0 && a.Trial < 0:
		why = fmt.Sprintf("this token works under the names %q only, not as %q. Ask under one of them", id.workers, a.Worker)
	case len(id.workers) > 0:
		why = fmt.Sprintf("trial %d is held by the worker %q, and this token works under the names %q only", a.Trial, a.Worker, id.workers)
	case f.bound[a.Worker] && a.Trial < 0:
		why = fmt.Sprintf("the worker name %q is bound to another token. Ask under another name", a.Worker)
	case f.bound[a.Worker]:
		why = fmt.Sprintf("trial %d is held by the worker %q, whose name is bound to another token", a.Trial, a.Worker)
	default:
		owner := s.owner(f, a)
		if owner == "" || owner == id.name {
			return nil
		}
		why = held(a, owner)
	}
	s.metrics.authFailures.WithLabelValues("name").Inc()
	return &tuner.DeniedError{Reason: why}
}

// owner returns the caller that owns a trial or a name, or "".
func (s *Server) owner(f tokenFile, a tuner.Act) string {
	works := func(caller string) bool {
		id, inForce := s.auth.named(f, caller)
		return inForce && id.scope.Role == RoleWorker && id.scope.covers(a.Study) &&
			(len(id.workers) == 0 || slices.Contains(id.workers, a.Worker))
	}
	for _, callers := range [][]string{a.Callers, a.Users} {
		if i := slices.IndexFunc(callers, works); i >= 0 {
			return callers[i]
		}
	}
	if len(a.Callers) > 0 {
		if id, inForce := s.auth.named(f, a.Callers[0]); inForce && id.scope.Role == RoleAdmin {
			return a.Callers[0]
		}
	}
	return ""
}

// held says what another caller owns, and the remedy.
func held(a tuner.Act, owner string) string {
	if a.Trial >= 0 {
		as := ""
		if a.Worker != "" {
			as = fmt.Sprintf(" as worker %q", a.Worker)
		}
		return fmt.Sprintf("trial %d is held by %s%s. Use that token or certificate, revoke it, or let an admin do it", a.Trial, owner, as)
	}
	return fmt.Sprintf("the worker name %q belongs to %s in this study. Ask under another name, or revoke that token or certificate", a.Worker, owner)
}

// asks completes an ask. If a token has exactly one name and the ask gives none, it
// uses that name. It then gets new trials, as an unnamed worker does.
func asks(ctx context.Context, c *study.Ask) {
	id, _ := identityOf(ctx)
	if c.Worker == "" && len(id.workers) == 1 && id.scope.Role != RoleAdmin {
		c.Worker, c.New = id.workers[0], true
	}
}
