package server_test

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	pb "github.com/bkbtuner/bkb/proto/tuner/v1"
	"github.com/bkbtuner/bkb/tuner/server"
	"github.com/bkbtuner/bkb/tuner/wire"
)

// expire moves a token's expiry into the past.
func expire(t *testing.T, path string, info server.TokenInfo) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	end := info.Expires.Format(time.RFC3339Nano)
	if !strings.Contains(string(data), end) {
		t.Fatalf("%s does not say %s", data, end)
	}
	if err := os.WriteFile(path, []byte(strings.ReplaceAll(string(data), end, "2001-01-01T00:00:00Z")), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestTokens(t *testing.T) {
	path := tokenPath(t)
	if _, err := server.ListTokens(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("listing a file that is not there: %v", err)
	}
	scope := server.Scope{Role: server.RoleWorker, Studies: []string{"a", "b"}}
	token, info, err := server.AddToken(path, scope, "laptop", time.Now().Add(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	second, _, err := server.AddToken(path, server.Scope{Role: server.RoleAdmin}, "", time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	if token.Reveal() == second.Reveal() || len(token.Reveal()) < 43 {
		t.Errorf("tokens %q and %q", token.Reveal(), second.Reveal())
	}
	file, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(file), strings.TrimPrefix(token.Reveal(), "bkb_")) {
		t.Error("the file holds the token itself")
	}
	if stat, err := os.Stat(path); err != nil || stat.Mode().Perm() != 0o600 {
		t.Errorf("the file's mode is %v", stat.Mode())
	}
	list, err := server.ListTokens(path)
	if err != nil || len(list) != 2 || list[0].Label != "laptop" || list[0].Scope.String() != "worker:a,b" || list[0].ID != info.ID || !list[1].Expires.IsZero() {
		t.Errorf("listed %+v, %v", list, err)
	}
	if err := server.RevokeToken(path, info.ID); err != nil {
		t.Error(err)
	}
	if err := server.RevokeToken(path, info.ID); err == nil {
		t.Error("revoked a token twice")
	}
	if list, _ := server.ListTokens(path); len(list) != 1 {
		t.Errorf("after revoking: %+v", list)
	}
	if _, _, err := server.AddToken(path, server.Scope{Role: "root"}, "", time.Time{}); err == nil {
		t.Error("made a token of no known role")
	}
	if _, _, err := server.AddToken(path, scope, "", time.Now().Add(-time.Hour)); err == nil {
		t.Error("made a token that had expired")
	}
	if matches, _ := filepath.Glob(path + ".*.tmp"); len(matches) > 0 {
		t.Errorf("left behind %v", matches)
	}
}

// TestTokensTogether checks that tokens made at the same time are all stored.
func TestTokensTogether(t *testing.T) {
	path := tokenPath(t)
	var group sync.WaitGroup
	for range 20 {
		group.Go(func() { addToken(t, path, server.Scope{Role: server.RoleRead}) })
	}
	group.Wait()
	if list, err := server.ListTokens(path); err != nil || len(list) != 20 {
		t.Errorf("%d tokens, %v", len(list), err)
	}
}

// TestTokenIDs checks that a new token does not get the id of another one, and that a
// file with one id twice is refused.
func TestTokenIDs(t *testing.T) {
	if id, err := server.NewID(strings.NewReader("abcdabcdefgh"), "61626364"); err != nil || id != "65666768" {
		t.Errorf("the new id is %q, %v", id, err)
	}
	path := tokenPath(t)
	admin := server.Scope{Role: server.RoleAdmin}
	addToken(t, path, admin)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var f map[string]any
	if err := json.Unmarshal(text, &f); err != nil {
		t.Fatal(err)
	}
	f["tokens"] = slices.Repeat(f["tokens"].([]any), 2)
	if text, err = json.Marshal(f); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := server.ListTokens(path); err == nil || !strings.Contains(err.Error(), "two tokens have the id") {
		t.Errorf("a file with one id twice: %v", err)
	}
}

func TestTokenFileRefused(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		mode os.FileMode
		want string
	}{
		"wide":          {`{"version":1,"tokens":[]}`, 0o644, "chmod 600"},
		"newer":         {`{"version":2,"tokens":[]}`, 0o600, "version"},
		"unknown field": {`{"version":1,"tokens":[],"x":1}`, 0o600, "unknown field"},
		"no JSON":       {`bkb_abc`, 0o600, "not a token file"},
		"short digest":  {`{"version":1,"tokens":[{"id":"a","scope":{"role":"admin"},"created":"2001-01-01T00:00:00Z","sha256":"00"}]}`, 0o600, "sha256"},
		"no role":       {`{"version":1,"tokens":[{"id":"a","scope":{"role":""},"created":"2001-01-01T00:00:00Z","sha256":"` + strings.Repeat("00", 32) + `"}]}`, 0o600, "scope"},
		"no studies":    {`{"version":1,"tokens":[{"id":"a","scope":{"role":"worker","studies":[]},"created":"2001-01-01T00:00:00Z","sha256":"` + strings.Repeat("00", 32) + `"}]}`, 0o600, "scope"},
	} {
		path := tokenPath(t)
		if err := os.WriteFile(path, []byte(c.text), c.mode); err != nil {
			t.Fatal(err)
		}
		if _, err := server.New(withStudies(t), server.Options{TokenFile: path}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want something about %q", name, err, c.want)
		}
	}
}

// TestTokensReread checks that a running server accepts new tokens and refuses revoked
// ones at the next call. If the file is invalid, it keeps the tokens read before.
func TestTokensReread(t *testing.T) {
	path := tokenPath(t)
	first := addToken(t, path, server.Scope{Role: server.RoleAdmin})
	r := start(t, withStudies(t), server.Options{TokenFile: path})
	c := pb.NewTunerClient(r.connect(t))
	code := func() codes.Code {
		_, err := c.GetStudy(as(t.Context(), first), &pb.GetStudyRequest{Name: "studies/mine"})
		return status.Code(err)
	}
	if got := code(); got != codes.OK {
		t.Errorf("at first: %s", got)
	}
	second := addToken(t, path, server.Scope{Role: server.RoleRead})
	if _, err := c.GetStudy(as(t.Context(), second), &pb.GetStudyRequest{Name: "studies/mine"}); err != nil {
		t.Errorf("a token that was added: %v", err)
	}
	good, _ := os.ReadFile(path)
	if err := os.WriteFile(path, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := code(); got != codes.OK {
		t.Errorf("with a broken file: %s", got)
	}
	if err := os.WriteFile(path, good, 0o600); err != nil {
		t.Fatal(err)
	}
	list, err := server.ListTokens(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := server.RevokeToken(path, list[0].ID); err != nil {
		t.Fatal(err)
	}
	if got := code(); got != codes.Unauthenticated {
		t.Errorf("a revoked token: %s", got)
	}
}

func TestParseScope(t *testing.T) {
	for _, text := range []string{"admin", "read", "worker", "worker:a", "worker:a,b.c"} {
		if s, err := server.ParseScope(text); err != nil || s.String() != text {
			t.Errorf("%q became %q, %v", text, s, err)
		}
	}
	for _, text := range []string{"", "root", "worker:", "worker:a,", "worker:../x", "read:a", "admin:"} {
		if s, err := server.ParseScope(text); err == nil {
			t.Errorf("%q became %q", text, s)
		}
	}
}

// TestWatchEndsWithItsToken checks that a stream ends when its token is revoked or
// expires. It ends before another message is sent, and soon if there is none.
func TestWatchEndsWithItsToken(t *testing.T) {
	for name, c := range map[string]struct {
		every time.Duration // interval of the checks of tokens
		event bool          // an event occurs in between
		end   func(t *testing.T, path string, info server.TokenInfo)
	}{
		"revoked, idle": {10 * time.Millisecond, false, func(t *testing.T, path string, info server.TokenInfo) {
			if err := server.RevokeToken(path, info.ID); err != nil {
				t.Error(err)
			}
		}},
		"expired, idle": {10 * time.Millisecond, false, expire},
		"revoked, busy": {time.Hour, true, func(t *testing.T, path string, info server.TokenInfo) {
			if err := server.RevokeToken(path, info.ID); err != nil {
				t.Error(err)
			}
		}},
		"expired, busy": {time.Hour, true, expire},
	} {
		t.Run(name, func(t *testing.T) {
			path := tokenPath(t)
			token, info, err := server.AddToken(path, server.Scope{Role: server.RoleRead}, "", time.Now().Add(time.Hour))
			if err != nil {
				t.Fatal(err)
			}
			service := withStudies(t)
			r := start(t, service, server.Options{TokenFile: path}, func(s *server.Server) { s.RecheckEvery(c.every) })
			stream, err := pb.NewTunerClient(r.connect(t)).Watch(as(t.Context(), token), &pb.WatchRequest{Parent: "studies/mine"})
			if err != nil {
				t.Fatal(err)
			}
			for range 2 { // the study was made, and a trial was handed out
				if _, err := stream.Recv(); err != nil {
					t.Fatal(err)
				}
			}
			c.end(t, path, info)
			if c.event {
				_, ask, _ := wire.Ask.Decode(&pb.AskRequest{Parent: "studies/mine", Worker: "v"})
				if _, err := service.Ask(t.Context(), "mine", ask); err != nil {
					t.Fatal(err)
				}
			}
			if m, err := stream.Recv(); status.Code(err) != codes.Unauthenticated {
				t.Errorf("got %v, %v", m, err)
			}
		})
	}
}
