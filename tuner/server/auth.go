package server

import (
	"cmp"
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"

	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/wire"
)

// identity is a known caller.
type identity struct {
	name  string // "token 3f2a9c01", "certificate worker-7", or "anybody"
	scope Scope
	rate  string // key of the rate limit, empty for none

	workers []string // names bound to it; if none, every name that is not bound

	forwarded bool // another server identified the caller and counted the call
}

// anonymous is the identity of callers of methods that need no permission.
var anonymous = identity{name: "anonymous"}

type identityKey struct{}

func identityOf(ctx context.Context) (identity, bool) {
	id, ok := ctx.Value(identityKey{}).(identity)
	return id, ok
}

// authenticator identifies callers.
type authenticator struct {
	tokens *watched[tokenFile] // nil without tokens
	scopes map[string]Scope    // of certificates
	open   bool                // every caller is an admin
	now    func() time.Time
}

func newAuthenticator(o Options, failed func(error)) (*authenticator, error) {
	a := &authenticator{scopes: o.ClientScopes, open: !o.closed(), now: time.Now}
	if o.TokenFile == "" {
		return a, nil
	}
	var err error
	a.tokens, err = newWatched(func() (tokenFile, error) { return readTokens(o.TokenFile) }, failed, o.TokenFile)
	return a, err
}

// refusal says why a caller is not known. The caller gets the text, and metrics get the kind.
type refusal struct{ kind, text string }

// identify returns the caller by its token, or else by its certificate. Of a call that
// another server forwarded it is the caller that the server passed on.
func (a *authenticator) identify(ctx context.Context) (identity, *refusal) {
	id, why := a.connected(ctx)
	if why != nil {
		return id, why
	}
	return a.passed(ctx, id)
}

// connected returns the caller of a connection.
func (a *authenticator) connected(ctx context.Context) (identity, *refusal) {
	headers := metadata.ValueFromIncomingContext(ctx, "authorization")
	switch {
	case a.open:
		return identity{name: "anybody", scope: Scope{Role: RoleAdmin}}, nil
	case len(headers) > 1:
		return identity{}, &refusal{"malformed", "the call has several tokens; send one"}
	case len(headers) == 1:
		return a.byToken(headers[0])
	case len(a.scopes) > 0:
		return a.byCertificate(ctx)
	default:
		return identity{}, &refusal{"none", `show a token: metadata "authorization: Bearer <token>"`}
	}
}

func (a *authenticator) byToken(header string) (identity, *refusal) {
	scheme, text, _ := strings.Cut(header, " ")
	if !strings.EqualFold(scheme, "bearer") || text == "" || len(text) > maxTokenBytes {
		return identity{}, &refusal{"malformed", `the authorization must be "Bearer <token>"`}
	}
	if a.tokens == nil {
		return identity{}, &refusal{"unknown", "this server accepts no tokens; use a client certificate"}
	}
	f := a.tokens.get()
	t, ok := f.find(text)
	switch {
	case !ok:
		return identity{}, &refusal{"unknown", "the token is unknown or revoked"}
	case t.Expired(a.now()):
		return identity{}, &refusal{"expired", "the token expired at " + t.Expires.Format(time.RFC3339)}
	default:
		return identity{name: "token " + t.ID, scope: t.Scope, rate: t.ID, workers: t.Workers}, nil
	}
}

// named returns a token or certificate by its name. ok is false if it is not in force.
func (a *authenticator) named(f tokenFile, name string) (id identity, ok bool) {
	if text, isToken := strings.CutPrefix(name, "token "); isToken {
		for _, t := range f.Tokens {
			if t.ID == text {
				return identity{name: name, scope: t.Scope, workers: t.Workers}, !t.Expired(a.now())
			}
		}
		return identity{}, false
	}
	if certificate, ok := strings.CutPrefix(name, "certificate "); ok {
		scope, ok := a.scopes[certificate]
		return identity{name: name, scope: scope}, ok
	}
	return identity{}, false
}

// byCertificate uses the first alternative name that has a scope. TLS has verified the
// certificate.
func (a *authenticator) byCertificate(ctx context.Context) (identity, *refusal) {
	var info credentials.TLSInfo
	if p, ok := peer.FromContext(ctx); ok {
		info, _ = p.AuthInfo.(credentials.TLSInfo)
	}
	if len(info.State.VerifiedChains) == 0 {
		return identity{}, &refusal{"none", "the call has no token or client certificate; send one"}
	}
	for _, name := range alternativeNames(info.State.VerifiedChains[0][0]) {
		if scope, ok := a.scopes[name]; ok {
			return identity{name: "certificate " + name, scope: scope, rate: "certificate " + name}, nil
		}
	}
	return identity{}, &refusal{"unknown", "no name in the client certificate has a scope on this server"}
}

func alternativeNames(c *x509.Certificate) []string {
	names := slices.Concat(c.DNSNames, c.EmailAddresses)
	for _, u := range c.URIs {
		names = append(names, u.String())
	}
	return names
}

// hostOf returns the caller's address without its port, or "local" if there is none.
func hostOf(ctx context.Context) string {
	host := ""
	if p, ok := peer.FromContext(ctx); ok && p.Addr != nil {
		host = addressOf(p.Addr)
	}
	return cmp.Or(host, "local")
}

// identify returns the caller of a call at the gate.
func (s *Server) identify(ctx context.Context) (identity, error) {
	id, why := s.auth.identify(ctx)
	if why == nil {
		return id, nil
	}
	host := hostOf(ctx)
	s.metrics.authFailures.WithLabelValues(why.kind).Inc()
	// A caller with a valid token is never refused because of failures at its address.
	// Failures are answered and logged only up to a rate.
	if wait := s.failures.take(host); wait > 0 {
		return identity{}, s.refused("authentication", host, "", wait)
	}
	s.log.Warn("unknown caller refused", "peer", host, "reason", why.kind)
	return identity{}, wire.Denied(why.kind == "peer", why.text).Err()
}

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
