package wiretest_test

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/bkbtuner/bkb/internal/freeport"
	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/client"
	"github.com/bkbtuner/bkb/tuner/server"
	"github.com/bkbtuner/bkb/tuner/wire/wiretest"
)

// serveAlone runs a server for a service without studies until the test ends.
func serveAlone(t *testing.T, o server.Options) (address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	o.DrainDelay = time.Millisecond
	s, err := server.New(wiretest.New(t), o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- s.Serve(ctx, l) }()
	t.Cleanup(func() { cancel(); <-done })
	return l.Addr().String()
}

// A wrong certificate fails at once. Each message names the server and the remedy.
func TestTrouble(t *testing.T) {
	ours, others := wiretest.NewAuthority(t), wiretest.NewAuthority(t)
	good, other := ours.Issue(t, "good", "127.0.0.1"), ours.Issue(t, "other", "example.org")
	secure := serveAlone(t, server.Options{CertFile: good.CertFile, KeyFile: good.KeyFile})
	mutual := serveAlone(t, server.Options{
		CertFile: good.CertFile, KeyFile: good.KeyFile, ClientCAFile: ours.CAFile,
		ClientScopes: map[string]server.Scope{"good": {Role: server.RoleAdmin}},
	})
	misnamed := serveAlone(t, server.Options{CertFile: other.CertFile, KeyFile: other.KeyFile})
	clear := serveAlone(t, server.Options{})
	web := httptest.NewUnstartedServer(http.NotFoundHandler())
	pair, err := tls.LoadX509KeyPair(good.CertFile, good.KeyFile)
	if err != nil {
		t.Fatal(err)
	}
	web.TLS = &tls.Config{Certificates: []tls.Certificate{pair}}
	web.StartTLS()
	t.Cleanup(web.Close)
	metrics := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(metrics.Close)
	free := freeport.Address(t)
	for name, c := range map[string]struct {
		address string
		o       client.Options
		want    string
	}{
		"other authority":    {secure, client.Options{CAFile: others.CAFile, RetryFor: time.Hour}, "(--ca)"},
		"other name":         {misnamed, client.Options{CAFile: ours.CAFile, RetryFor: time.Hour}, "must be valid for the name"},
		"no certificate":     {mutual, client.Options{CAFile: ours.CAFile, RetryFor: time.Hour}, "(--cert, --key)"},
		"plaintext to TLS":   {secure, client.Options{Plaintext: true, RetryFor: time.Hour}, "speak TLS, so name the CA certificate that signed its certificate (--ca)"},
		"TLS to plaintext":   {clear, client.Options{CAFile: ours.CAFile, RetryFor: time.Hour}, "does not speak TLS"},
		"a page over TLS":    {web.Listener.Addr().String(), client.Options{CAFile: ours.CAFile, RetryFor: time.Hour}, "tuner serve --listen"},
		"metrics":            {metrics.Listener.Addr().String(), client.Options{Plaintext: true, RetryFor: time.Hour}, "tuner serve --listen"},
		"nobody listens":     {free, client.Options{Plaintext: true, RetryFor: 300 * time.Millisecond}, "does a server run there?"},
		"a name of no place": {"no-such-host.invalid:1", client.Options{Plaintext: true, RetryFor: -1}, "cannot reach no-such-host.invalid:1: "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, err := client.Dial(c.address, c.o)
			if err != nil {
				t.Fatal(err)
			}
			defer d.Close()
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			_, _, err = d.Studies(ctx, "", 0)
			if ctx.Err() != nil {
				t.Error("it tried again for a minute")
			}
			if tuner.CodeOf(err) != tuner.Unavailable || !strings.Contains(err.Error(), "cannot reach "+c.address+": ") || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want something about %q", err, c.want)
			}
			// A probe, which tries once, says the same.
			if _, probed := d.Healthy(ctx); probed == nil || !strings.Contains(probed.Error(), c.want) {
				t.Errorf("a probe got %v, want something about %q", probed, c.want)
			}
			remote := (*tuner.RemoteError)(nil)
			if final := c.o.RetryFor == time.Hour; !errors.As(err, &remote) || remote.Final != final {
				t.Errorf("%v: final is not %v", err, final)
			}
		})
	}
}

// A client whose calls wait for a server is notified once.
func TestOnTrouble(t *testing.T) {
	t.Parallel()
	var heard atomic.Int32
	d, err := client.Dial("unix:"+t.TempDir()+"/none", client.Options{Plaintext: true, RetryFor: 3 * time.Second, OnTrouble: func(got client.Trouble) {
		heard.Add(1)
		if !strings.HasSuffix(got.Address, "/none") || !strings.Contains(got.Why, "no such file") || time.Until(got.Until) > 2*time.Second {
			t.Errorf("heard %+v", got)
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	var calls sync.WaitGroup
	for range 2 {
		calls.Go(func() {
			if _, _, err := d.Studies(t.Context(), "", 0); tuner.CodeOf(err) != tuner.Unavailable {
				t.Error(err)
			}
		})
	}
	calls.Wait()
	if heard.Load() != 1 {
		t.Errorf("heard %d times", heard.Load())
	}
}

// A connection without TLS that a stopping server closes is tried again.
func TestClosedConnection(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	var tries atomic.Int32
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			tries.Add(1)
			conn.Close()
		}
	}()
	d, err := client.Dial(l.Addr().String(), client.Options{Plaintext: true, RetryFor: 3 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	_, _, err = d.Studies(t.Context(), "", 0)
	remote := (*tuner.RemoteError)(nil)
	if !errors.As(err, &remote) || remote.Code != tuner.Unavailable || remote.Final || tries.Load() < 4 {
		t.Errorf("after %d tries: %v", tries.Load(), err)
	}
}

// A server that requires a token says so at once, and the message names the flag.
func TestNoToken(t *testing.T) {
	t.Parallel()
	tokens := filepath.Join(t.TempDir(), "tokens.json")
	if err := os.WriteFile(tokens, []byte(`{"version":1,"tokens":[]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	address := serveAlone(t, server.Options{TokenFile: tokens})
	d, err := client.Dial(address, client.Options{Plaintext: true, RetryFor: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if _, _, err = d.Studies(t.Context(), "", 0); tuner.CodeOf(err) != tuner.Denied || !strings.Contains(err.Error(), "(--token-file)") {
		t.Errorf("got %v", err)
	}
}
