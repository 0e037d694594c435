package serve_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/bkbtuner/bkb/tuner/serve"
	"github.com/bkbtuner/bkb/tuner/server"
)

// bearer adds a token to requests.
type bearer string

// RoundTrip implements [http.RoundTripper].
func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+string(b))
	return http.DefaultTransport.RoundTrip(r)
}

// TestAgentsOverHTTP checks that agents have the permissions of their tokens, with calls of
// one answer and with streams.
func TestAgentsOverHTTP(t *testing.T) {
	dir := t.TempDir()
	tokens := filepath.Join(dir, "tokens.json")
	token := map[string]string{"none": "unknown"}
	for _, text := range []string{"admin", "worker:digits", "worker:other", "read"} {
		scope, err := server.ParseScope(text)
		if err != nil {
			t.Fatal(err)
		}
		secret, _, err := server.AddToken(tokens, scope, "", time.Time{})
		if err != nil {
			t.Fatal(err)
		}
		token[text] = secret.Reveal()
	}
	ctx, stop := context.WithCancel(t.Context())
	serving, done := make(chan serve.Ready, 1), make(chan error, 1)
	c := serve.Config{File: filepath.Join(dir, "tuner.db"), HTTP: "127.0.0.1:0", OnServing: func(r serve.Ready) { serving <- r }}
	c.Server.Address, c.Server.TokenFile, c.Server.DrainDelay = "127.0.0.1:0", tokens, time.Millisecond
	go func() { done <- serve.Run(ctx, c) }()
	var at serve.Ready
	select {
	case at = <-serving:
	case err := <-done:
		t.Fatal(err)
	}
	defer func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}()
	dial := func(who string) (*sdk.ClientSession, error) {
		transport := &sdk.StreamableClientTransport{Endpoint: "http://" + at.HTTP + "/mcp", HTTPClient: &http.Client{Transport: bearer(token[who])}, MaxRetries: -1}
		return sdk.NewClient(&sdk.Implementation{Name: "test"}, nil).Connect(ctx, transport, nil)
	}
	if _, err := dial("none"); err == nil || !strings.Contains(err.Error(), "Unauthorized") {
		t.Errorf("an unknown token: %v", err)
	}
	create := `{"study": "digits", "parameters": [{"name": "x", "type": "float", "low": 0, "high": 1}]}`
	for _, call := range []struct{ who, tool, arguments, want string }{
		{"worker:digits", "create_study", create, "needs the scope admin"},
		{"admin", "create_study", create, `"state":"active"`},
		{"read", "ask", `{"study": "digits"}`, "the user must give a token"},
		{"worker:other", "ask", `{"study": "digits"}`, "the user must give a token"},
		{"worker:digits", "ask", `{"study": "digits", "worker": "w"}`, `"trial":0`},
		{"worker:digits", "tell", `{"study": "digits", "results": [{"trial": 0, "value": 0.5}]}`, `"told":1`},
		{"worker:digits", "tell", `{"study": "digits", "results": [{"trial": 0, "value": 0.5}]}`, `"trials":"1"`},
		{"read", "watch", `{"study": "digits", "after": 0}`, "told trial 0"},
		{"read", "watch", `{"study": "digits", "wait_seconds": 1}`, `"rows":[]`},
		{"read", "list_trials", `{"study": "digits", "order": "best"}`, `[0,"completed",0.5`},
		{"read", "plot", `{"study": "digits"}`, "Best so far"},
		{"worker:other", "list_studies", `{}`, "the user must give a token"},
	} {
		session, err := dial(call.who)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := session.CallTool(ctx, &sdk.CallToolParams{Name: call.tool, Arguments: json.RawMessage(call.arguments)})
		if err != nil {
			t.Fatal(err)
		}
		var text string
		for _, c := range answer.Content {
			if c, ok := c.(*sdk.TextContent); ok {
				text += c.Text
			}
		}
		if !strings.Contains(text, call.want) {
			t.Errorf("%s as %s: %s, want %s", call.tool, call.who, text, call.want)
		}
		if err := session.Close(); err != nil {
			t.Error(err)
		}
	}
	for _, c := range []struct {
		method, body string
		want         int
	}{{http.MethodGet, "", 405}, {http.MethodPost, strings.Repeat(" ", 2<<20), 413}, {http.MethodPost, "{", 400}} {
		r, err := http.NewRequestWithContext(ctx, c.method, "http://"+at.HTTP+"/mcp", strings.NewReader(c.body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json, text/event-stream")
		answer, err := (&http.Client{Transport: bearer(token["read"])}).Do(r)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		if answer.StatusCode != c.want {
			t.Error(fmt.Sprint(c.method, " of ", len(c.body), " bytes: ", answer.Status))
		}
	}
}
