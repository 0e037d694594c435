package main

import (
	"context"
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"tuner": func() { os.Exit(run(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) },
	})
}

// TestScripts runs the transcripts in testdata/script; UPDATE_SCRIPTS=1 rewrites what
// they expect.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:           "testdata/script",
		UpdateScripts: os.Getenv("UPDATE_SCRIPTS") != "",
		Setup: func(env *testscript.Env) error {
			example, err := os.ReadFile("../../examples/sgd.yaml")
			if err != nil {
				return err
			}
			return os.WriteFile(env.WorkDir+"/sgd.yaml", example, 0o600)
		},
	})
}
