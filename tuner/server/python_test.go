package server_test

import (
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bkbtuner/bkb/tuner/server"
	"github.com/bkbtuner/bkb/tuner/study"
	"github.com/bkbtuner/bkb/tuner/wire/wiretest"
)

// TestPython runs examples/python/ask_tell.py against a server with TLS and tokens.
// $TUNER_PYTHON names an interpreter other than python3.
func TestPython(t *testing.T) {
	python := os.Getenv("TUNER_PYTHON")
	if python == "" {
		python = "python3"
	}
	run := func(env []string, args ...string) (string, error) {
		cmd := exec.CommandContext(t.Context(), python, args...)
		cmd.Env = append(os.Environ(), env...)
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	if out, err := run(nil, "-c", "import grpc, grpc_tools"); err != nil {
		t.Skipf("%s cannot import grpcio and grpcio-tools (%v): %s", python, err, out)
	}
	stubs := t.TempDir()
	if out, err := run(nil, "-m", "grpc_tools.protoc", "-I", filepath.Join("..", "..", "proto", "tuner", "v1"),
		"--python_out="+stubs, "--grpc_python_out="+stubs, "tuner.proto"); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	authority := wiretest.NewAuthority(t)
	pair := authority.Issue(t, "server", "localhost", "127.0.0.1")
	path := tokenPath(t)
	token := addToken(t, path, server.Scope{Role: server.RoleAdmin})
	service := wiretest.New(t)
	r := start(t, service, server.Options{CertFile: pair.CertFile, KeyFile: pair.KeyFile, TokenFile: path})
	_, port, err := net.SplitHostPort(r.address)
	if err != nil {
		t.Fatal(err)
	}
	const trials = 20
	script := filepath.Join("..", "..", "examples", "python", "ask_tell.py")
	env := []string{"PYTHONPATH=" + stubs, "PYTHONDONTWRITEBYTECODE=1", "TUNER_CA=" + authority.CAFile, "TUNER_TOKEN=" + token.Reveal()}
	out, err := run(env, script, "localhost:"+port, "demo", "20")
	if err != nil || !strings.Contains(out, "studies/demo/trials/") {
		t.Fatalf("%v: %s", err, out)
	}
	s, err := service.Study(context.Background(), "demo")
	if err != nil || s.Counts[study.Completed] != trials {
		t.Errorf("the study has %v, %v", s.Counts, err)
	}
	env[len(env)-1] = "TUNER_TOKEN=bkb_wrong"
	if out, err := run(env, script, "localhost:"+port, "other", "1"); err == nil || !strings.Contains(out, "UNAUTHENTICATED") {
		t.Errorf("with a wrong token: %v: %s", err, out)
	}
}
