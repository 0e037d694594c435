package server_test

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/bkbtuner/bkb/tuner/server"
	"github.com/bkbtuner/bkb/tuner/wire/wiretest"
)

// TestValidateReportsAll checks that Validate reports all errors at once.
func TestValidateReportsAll(t *testing.T) {
	err := server.Options{
		Address: "nowhere", MetricsAddress: "unix:", CertFile: "c", ClientScopes: map[string]server.Scope{"x": {Role: "y"}},
		StopTimeout: -1, Limits: server.Limits{MaxRecvBytes: -1, MaxAge: -1},
	}.Validate()
	if err == nil {
		t.Fatal("no fault was found")
	}
	for _, want := range []string{"Address: ", "MetricsAddress: ", "CertFile and KeyFile", "CA certificate", `"x"`, "StopTimeout -1ns: ", "Limits.MaxRecvBytes ", "Limits.MaxAge "} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("nothing about %q in: %v", want, err)
		}
	}
	if err := (server.Options{}).Validate(); err != nil {
		t.Errorf("the defaults: %v", err)
	}
}

// TestRemoteRefused checks that other machines reach the server only with TLS and
// tokens, or with InsecureAllowRemote.
func TestRemoteRefused(t *testing.T) {
	a := wiretest.NewAuthority(t)
	pair := a.Issue(t, "server", "127.0.0.1")
	path := tokenPath(t)
	addToken(t, path, server.Scope{Role: server.RoleAdmin})
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for name, c := range map[string]struct {
		o    server.Options
		want string
	}{
		"nothing":     {server.Options{}, "without TLS and authentication"},
		"tokens only": {server.Options{TokenFile: path}, "without TLS, because other machines can reach it; give CertFile and KeyFile, listen"},
		"TLS only":    {server.Options{CertFile: pair.CertFile, KeyFile: pair.KeyFile}, "give TokenFile or ClientCAFile, listen on 127.0.0.1, or allow it with InsecureAllowRemote"},
		"both":        {server.Options{CertFile: pair.CertFile, KeyFile: pair.KeyFile, TokenFile: path}, ""},
		"insists":     {server.Options{InsecureAllowRemote: true}, ""},
	} {
		for _, address := range []string{"0.0.0.0:0", "[::]:0", ":0"} {
			c.o.Address, c.o.DrainDelay = address, time.Millisecond
			s, err := server.New(withStudies(t), c.o)
			if err != nil {
				t.Fatal(err)
			}
			l, err := s.Listen()
			if (c.want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s on %s: %v, want %q", name, address, err, c.want)
			}
			if l != nil {
				l.Close()
			}
		}
		s, _ := server.New(withStudies(t), c.o)
		l, err := net.Listen("tcp", "0.0.0.0:0")
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Serve(ended, l); (c.want == "") != (err == nil) {
			t.Errorf("%s, serving on a given listener: %v", name, err)
		}
	}
	s, err := server.New(withStudies(t), server.Options{MetricsAddress: "0.0.0.0:0", Address: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Serve(ended, nil); err == nil || !strings.Contains(err.Error(), "metrics") {
		t.Errorf("metrics for everybody: %v", err)
	}
	if err := s.Serve(ended, nil); err == nil {
		t.Error("a server served twice")
	}
}

// TestUnixSocket checks that only the owner can use the socket, and a stale one is
// replaced.
func TestUnixSocket(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	for range 2 {
		s, err := server.New(withStudies(t), server.Options{Address: "unix:" + path, DrainDelay: time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		l, err := s.Listen()
		if err != nil {
			t.Fatal(err)
		}
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("mode %v, %v", info.Mode(), err)
		}
		if second, err := s.Listen(); err == nil {
			second.Close()
			t.Error("two servers listen on one socket")
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- s.Serve(ctx, l) }()
		conn, err := grpc.NewClient("unix:"+path, grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			t.Fatal(err)
		}
		if got := get(t.Context(), conn); got != codes.OK {
			t.Errorf("over the socket: %s", got)
		}
		conn.Close()
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if l, err := net.Listen("unix", path); err == nil { // a stale socket for the next round
			l.(*net.UnixListener).SetUnlinkOnClose(false)
			l.Close()
		}
	}
}
