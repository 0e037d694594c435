package server_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	pb "github.com/bkbtuner/bkb/proto/tuner/v1"
	"github.com/bkbtuner/bkb/tuner/server"
	"github.com/bkbtuner/bkb/tuner/wire/wiretest"
)

// passing returns a context that passes a caller on.
func passing(t *testing.T, name string, scope server.Scope, workers ...string) context.Context {
	t.Helper()
	text, err := json.Marshal(map[string]any{"name": name, "scope": scope, "workers": workers})
	if err != nil {
		t.Fatal(err)
	}
	return passingText(t, string(text))
}

func passingText(t *testing.T, texts ...string) context.Context {
	ctx := t.Context()
	for _, text := range texts {
		ctx = metadata.AppendToOutgoingContext(ctx, "tuner-caller-bin", text)
	}
	return ctx
}

func wantCode(t *testing.T, what string, err error, want codes.Code, text string) {
	t.Helper()
	if got := status.Code(err); got != want || err != nil && !strings.Contains(err.Error(), text) {
		t.Errorf("%s: %v, want %s with %q", what, err, want, text)
	}
}

// TestPeers lets servers and others pass callers on.
func TestPeers(t *testing.T) {
	tokens := tokenPath(t)
	admin := addToken(t, tokens, server.Scope{Role: server.RoleAdmin})
	authority := wiretest.NewAuthority(t)
	pair := authority.Issue(t, "server", "127.0.0.1")
	audit := filepath.Join(t.TempDir(), "audit")
	r := start(t, onDisk(t, filepath.Join(t.TempDir(), "tuner.db")), server.Options{
		TokenFile: tokens, CertFile: pair.CertFile, KeyFile: pair.KeyFile, ClientCAFile: authority.CAFile, AuditFile: audit,
		ClientScopes: map[string]server.Scope{"tuner-2": {Role: server.RolePeer}, "root": {Role: server.RoleAdmin}},
		Reflection:   true, Limits: server.Limits{AuthFailureRate: -1},
	})
	peer := r.connect(t, trusting(t, authority, bearing(t, authority.Issue(t, "tuner-2", "tuner-2"))))
	c := pb.NewTunerClient(peer)
	get := func(ctx context.Context, c pb.TunerClient) error {
		_, err := c.GetStudy(ctx, &pb.GetStudyRequest{Name: "studies/mine"})
		return err
	}
	worker := server.Scope{Role: server.RoleWorker, Studies: []string{"mine"}}

	// Others may not pass a caller on, an admin not either.
	anonymous := pb.NewTunerClient(r.connect(t, trusting(t, authority, nil)))
	root := pb.NewTunerClient(r.connect(t, trusting(t, authority, bearing(t, authority.Issue(t, "root", "root")))))
	header := metadata.Pairs("tuner-caller-bin", `{"name":"token x","scope":{"role":"admin"}}`)
	header.Append("authorization", "Bearer "+admin.Reveal())
	wantCode(t, "the header of an admin's token", get(metadata.NewOutgoingContext(t.Context(), header), anonymous), codes.PermissionDenied, "scope peer")
	wantCode(t, "the header of an admin's certificate", get(passing(t, "token x", worker), root), codes.PermissionDenied, "scope peer")
	wantCode(t, "the header from an anonymous caller", get(passing(t, "token x", worker), anonymous), codes.Unauthenticated, "")
	wantCode(t, "an admin without the header", get(t.Context(), root), codes.OK, "")

	// A peer may do nothing in its own name.
	for method, call := range methods(peer) {
		ctx, cancel := context.WithCancel(t.Context())
		got := status.Code(call(ctx))
		cancel()
		free := slices.Contains([]string{"GetCaller", "Health.Check", "Reflection"}, method)
		if denied := got == codes.PermissionDenied; denied == free {
			t.Errorf("%s by a peer: %s", method, got)
		}
	}

	// The caller that it passes on may do what its scope permits.
	wantCode(t, "a worker's read", get(passing(t, "token x", worker), c), codes.OK, "")
	wantCode(t, "another worker's read", get(passing(t, "token x", server.Scope{Role: server.RoleWorker, Studies: []string{"theirs"}}), c), codes.PermissionDenied, "")
	_, err := c.PauseStudy(passing(t, "token x", worker), &pb.PauseStudyRequest{Name: "studies/mine"})
	wantCode(t, "a worker's pause", err, codes.PermissionDenied, "")
	_, err = c.Ask(passing(t, "token x", worker, "gpu-1"), &pb.AskRequest{Parent: "studies/mine", Worker: "gpu-2"})
	wantCode(t, "an ask under a foreign name", err, codes.PermissionDenied, "gpu-1")
	_, err = c.Ask(passing(t, "token x", worker, "gpu-1"), &pb.AskRequest{Parent: "studies/mine", Worker: "gpu-1"})
	wantCode(t, "an ask under the own name", err, codes.OK, "")
	who, err := c.GetCaller(passing(t, "token x", worker), &pb.GetCallerRequest{})
	if err != nil || who.GetName() != "token x" || who.GetRole() != "worker" {
		t.Errorf("the caller is %v, %v", who, err)
	}

	// Callers that cannot be are refused.
	for _, texts := range [][]string{
		{"no JSON"},
		{"{}"},
		{`{"name":"x","scope":{"role":"peer"}}`},
		{`{"name":"x","scope":{"role":"root"}}`},
		{`{"name":"x","scope":{"role":"admin"}}`, `{"name":"y","scope":{"role":"admin"}}`},
	} {
		wantCode(t, fmt.Sprint("the callers ", texts), get(passingText(t, texts...), c), codes.Unauthenticated, "pass")
	}
	r.stop()
	text, err := os.ReadFile(audit)
	if err != nil {
		t.Fatal(err)
	}
	if lines := string(text); !strings.Contains(lines, `"who":"token x","what":"Ask"`) || strings.Contains(lines, "tuner-2") {
		t.Errorf("the audit does not name the caller:\n%s", lines)
	}
}

// TestPeerTokens refuses the scope of a peer for a token.
func TestPeerTokens(t *testing.T) {
	if _, _, err := server.AddToken(tokenPath(t), server.Scope{Role: server.RolePeer}, "", time.Time{}); err == nil || !strings.Contains(err.Error(), "certificates of servers only") {
		t.Errorf("a token got the scope peer: %v", err)
	}
}
