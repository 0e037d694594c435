package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"google.golang.org/grpc/metadata"

	"github.com/bkbtuner/bkb/tuner"
)

// Servers that share a database forward calls to each other (see package cluster). The
// server that a caller reaches identifies the caller, checks its permission and counts
// the call. It passes the caller on in a header. Only a peer may send this header, which
// is a client certificate with the scope peer, or anybody where every caller is an admin.
// A peer may do nothing in its own name.

// callerHeader has the caller of a call that another server forwarded, in JSON.
const callerHeader = "tuner-caller-bin"

// maxPassedBytes is the largest caller that is passed on. It leaves room for other
// headers of a call.
const maxPassedBytes = 8 << 10

// passedCaller is the caller of a forwarded call.
type passedCaller struct {
	Name    string   `json:"name"`
	Scope   Scope    `json:"scope"`
	Workers []string `json:"workers,omitempty"`
}

// PassOn returns the context for forwarding a call for a study to another server. ctx is
// that of the call.
func PassOn(ctx context.Context, study string) (context.Context, error) {
	id, ok := identityOf(ctx)
	if !ok {
		return nil, errors.New("a call without a caller cannot be passed on")
	}
	scope := id.scope
	if slices.Contains(scope.Studies, study) {
		scope.Studies = []string{study} // of thousands
	}
	text, err := json.Marshal(passedCaller{id.name, scope, id.workers})
	if err != nil {
		return nil, err
	}
	if len(text) > maxPassedBytes {
		return nil, &tuner.DeniedError{Reason: fmt.Sprintf("%s has too many worker names to be passed on to the server that has the study. Use several tokens", id.name)}
	}
	out := metadata.Pairs(callerHeader, string(text))
	return metadata.NewOutgoingContext(ctx, out), nil
}

// Forwarded tells whether another server forwarded the call of a context.
func Forwarded(ctx context.Context) bool {
	id, _ := identityOf(ctx)
	return id.forwarded
}

// passed returns the caller that a peer passed on. by is the identity of the connection.
func (a *authenticator) passed(ctx context.Context, by identity) (identity, *refusal) {
	texts := metadata.ValueFromIncomingContext(ctx, callerHeader)
	switch {
	case len(texts) == 0:
		return by, nil
	case by.scope.Role != RolePeer && !a.open:
		return identity{}, &refusal{"peer", fmt.Sprintf("only a server may pass a caller on, and %s does not have the scope peer", by.name)}
	case len(texts) > 1:
		return identity{}, &refusal{"malformed", "the call passes several callers on; pass one"}
	}
	var c passedCaller
	if err := json.Unmarshal([]byte(texts[0]), &c); err != nil {
		return identity{}, &refusal{"malformed", "the caller that was passed on cannot be read; use servers of one version"}
	}
	if err := c.Scope.Validate(); err != nil || c.Scope.Role == RolePeer {
		return identity{}, &refusal{"malformed", "the caller that was passed on has no scope of a caller; use servers of one version"}
	}
	return identity{name: c.Name, scope: c.Scope, workers: c.Workers, forwarded: true}, nil
}
