package server

import (
	"fmt"
	"slices"
	"strings"

	"github.com/bkbtuner/bkb/store"
)

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
