package server

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"google.golang.org/grpc"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	reflectionpb "google.golang.org/grpc/reflection/grpc_reflection_v1"
	reflectionalphapb "google.golang.org/grpc/reflection/grpc_reflection_v1alpha"

	"github.com/bkbtuner/bkb/store"
	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/study"
	"github.com/bkbtuner/bkb/tuner/wire"
)

// methods returns all methods by their full names. A method that is not there is refused.
func methods() map[string]wire.Method {
	all := map[string]wire.Method{
		healthpb.Health_Check_FullMethodName:                                   {Need: wire.NeedNothing},
		healthpb.Health_List_FullMethodName:                                    {Need: wire.NeedNothing},
		healthpb.Health_Watch_FullMethodName:                                   {Need: wire.NeedNothing},
		reflectionpb.ServerReflection_ServerReflectionInfo_FullMethodName:      {Need: wire.NeedAny},
		reflectionalphapb.ServerReflection_ServerReflectionInfo_FullMethodName: {Need: wire.NeedAny},
	}
	for _, m := range wire.Methods {
		all[m.FullName()] = m
	}
	return all
}

// checkComplete returns an error that names the methods without a permission.
func checkComplete(services map[string]grpc.ServiceInfo, table map[string]wire.Method) error {
	var missing []string
	for _, service := range slices.Sorted(maps.Keys(services)) {
		for _, m := range services[service].Methods {
			if name := "/" + service + "/" + m.Name; table[name].Need == 0 {
				missing = append(missing, name)
			}
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("the table of methods lacks %s", strings.Join(missing, ", "))
	}
	return nil
}

// permits reports whether a scope permits a request.
func (s Scope) permits(n wire.Need, request any) bool {
	switch {
	case n == wire.NeedNothing, n == wire.NeedAny, s.Role == RoleAdmin:
		return n != 0
	case n == wire.NeedRead && s.Role == RoleRead, n == wire.NeedReadAll && s.Role == RoleRead:
		return true
	case s.Role != RoleWorker:
		return false
	}
	switch n {
	case wire.NeedRead, wire.NeedWork:
		return s.Studies == nil || s.coversRequest(request)
	case wire.NeedWorkTrials:
		_, _, err := wire.ParseTrialName(resourceOf(request))
		return err == nil && s.coversRequest(request)
	case wire.NeedReadAll:
		return s.Studies == nil
	default:
		return false
	}
}

// denied is the error of a request that the scope does not permit. It names the scopes that do.
func (s Scope) denied(n wire.Need, request any) error {
	worker := Scope{Role: RoleWorker}
	if study, ok := wire.StudyOf(resourceOf(request)); ok && n != wire.NeedReadAll {
		worker.Studies = []string{study}
	}
	enough := string(RoleAdmin)
	if worker.permits(n, request) {
		enough = worker.String() + " or " + enough
	}
	if (Scope{Role: RoleRead}).permits(n, request) {
		enough = string(RoleRead) + ", " + enough
	}
	return wire.Denied(true, "the scope "+s.String()+" does not permit this call; it needs the scope "+enough).Err()
}

func (s Scope) coversRequest(request any) bool {
	study, ok := wire.StudyOf(resourceOf(request))
	return ok && s.covers(study)
}

// resourceOf returns the resource name in a request, or "" if it has none.
func resourceOf(request any) string {
	switch r := request.(type) {
	case interface{ GetParent() string }:
		return r.GetParent()
	case interface{ GetName() string }:
		return r.GetName()
	default:
		return ""
	}
}

// Role is the kind of a caller.
type Role string

// The roles, from the most permitted to the least.
const (
	RoleAdmin  Role = "admin"
	RoleWorker Role = "worker"
	RoleRead   Role = "read"
	// RolePeer is another server of the same database. It passes on the calls of others
	// and may do nothing else. Only certificates have it.
	RolePeer Role = "peer"
)

// Scope says what a caller may do. Studies limits a worker to named studies, and is nil
// for all studies.
type Scope struct {
	Role    Role     `json:"role"`
	Studies []string `json:"studies,omitempty"`
}

// ParseScope parses admin, read, peer, worker (of all studies) or worker:study,study….
func ParseScope(text string) (Scope, error) {
	role, studies, listed := strings.Cut(text, ":")
	s := Scope{Role: Role(role)}
	if listed {
		s.Studies = strings.Split(studies, ",")
	}
	return s, s.Validate()
}

// String returns the scope in the form that [ParseScope] parses.
func (s Scope) String() string {
	if len(s.Studies) == 0 {
		return string(s.Role)
	}
	return string(s.Role) + ":" + strings.Join(s.Studies, ",")
}

// Validate returns an error if the scope is invalid.
func (s Scope) Validate() error {
	switch s.Role {
	case RoleAdmin, RoleRead, RoleWorker, RolePeer:
	default:
		return fmt.Errorf("scope %q: must be admin, read, worker, or worker:study,study…, or peer for the certificate of a server", s)
	}
	if s.Role != RoleWorker && s.Studies != nil {
		return fmt.Errorf("scope %q: only workers can be limited to studies", s)
	}
	if s.Studies != nil && len(s.Studies) == 0 {
		return fmt.Errorf("scope %q: name a study, or leave the list out for all", s)
	}
	for _, name := range s.Studies {
		if err := store.CheckName(name); err != nil {
			return fmt.Errorf("scope %q: %w", s, err)
		}
	}
	return nil
}

// covers reports whether a worker of this scope works for the study.
func (s Scope) covers(study string) bool {
	return s.Studies == nil || slices.Contains(s.Studies, study)
}

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
