package server

import (
	"context"
	"fmt"
	"slices"

	"github.com/bkbtuner/bkb/internal/planted"
	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/study"
)

// A worker name belongs to the tokens that the token file binds it to. A name that is
// not bound belongs, in each study, to the worker token or certificate that was last
// handed a trial under it. Only its owner asks under it. Only the last caller that was
// handed a trial under a lease reports or tells it under this lease. A revoked or
// expired caller owns nothing. Admins may act for all workers. They never own a name,
// and own the trials that no worker was handed.

// withCaller adds the caller to the context of a call to the service.
func (s *Server) withCaller(ctx context.Context) context.Context {
	id, _ := identityOf(ctx)
	if s.auth.open {
		return ctx
	}
	c := tuner.Caller{Name: id.name}
	if id.scope.Role != RoleAdmin && !planted.Is(planted.NameUnchecked) {
		files := tokenFile{}
		if s.auth.tokens != nil {
			files = s.auth.tokens.get()
		}
		c.Permit = func(a tuner.Act) error { return s.permit(id, files, a) }
	}
	return tuner.WithCaller(ctx, c)
}

// permit refuses to act for a worker of another token or certificate.
func (s *Server) permit(id identity, f tokenFile, a tuner.Act) error {
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

// owner returns the caller in force that owns a trial or a name, or "".
func (s *Server) owner(f tokenFile, a tuner.Act) string {
	admin := ""
	for _, caller := range a.Callers {
		scope, inForce := s.auth.scopeOf(f, caller)
		switch {
		case inForce && scope.Role != RoleAdmin:
			return caller
		case inForce && admin == "" && a.Trial >= 0:
			admin = caller
		}
	}
	return admin
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
