//go:build cuda && cgo && linux

package main

import (
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/bkbtuner/bkb/internal/gpu/cudatest"
)

// TestDeviceScripts runs the transcripts in testdata/cuda with a stand-in for the driver,
// $STANDIN.
func TestDeviceScripts(t *testing.T) {
	library, err := cudatest.Build(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir:           "testdata/cuda",
		UpdateScripts: os.Getenv("UPDATE_SCRIPTS") != "",
		Setup: func(env *testscript.Env) error {
			env.Setenv("STANDIN", library)
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"status": status},
	})
}
