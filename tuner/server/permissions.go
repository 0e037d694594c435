package server

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"google.golang.org/grpc"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	reflectionpb "google.golang.org/grpc/reflection/grpc_reflection_v1"
	reflectionalphapb "google.golang.org/grpc/reflection/grpc_reflection_v1alpha"

	"github.com/bkbtuner/bkb/store"
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

// denied is the error of a request that the scope does not permit. It names the scopes
// that do.
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
