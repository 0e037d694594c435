package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"tuner": main,
	})
}

// TestScripts runs the transcripts in testdata/script; UPDATE_SCRIPTS=1 rewrites what
// they expect.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:           "testdata/script",
		UpdateScripts: os.Getenv("UPDATE_SCRIPTS") != "",
		Setup:         setup,
		Condition:     condition,
		Cmds:          map[string]func(*testscript.TestScript, bool, []string){"status": status},
	})
}

// condition tells whether there are real data: [!data] skip.
func condition(name string) (bool, error) {
	if name != "data" {
		return false, errors.New("the only condition is data")
	}
	return realData() != "", nil
}

// realData is the folder of real data, empty if there is none.
func realData() string {
	folder := os.Getenv("BKB_DATA")
	if folder == "" {
		folder = filepath.Join("..", "..", "..", "shared", "data")
	}
	path, err := filepath.Abs(folder)
	if err != nil || !isDir(path) {
		return ""
	}
	return path
}

// setup gives a script the examples, and the folder of real data as $BKB_DATA.
func setup(env *testscript.Env) error {
	env.Setenv("BKB_DATA", realData())
	for _, name := range []string{"sgd.yaml", "train.yaml", "train.sh"} {
		text, err := os.ReadFile("../../examples/" + name)
		if err != nil {
			return err
		}
		if err := os.WriteFile(env.WorkDir+"/"+name, text, 0o700); err != nil {
			return err
		}
	}
	return nil
}

// status runs a command line that must exit with the given status.
func status(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: status N command [arg…]")
	}
	err := ts.Exec(args[1], args[2:]...)
	got := 0
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		got = exit.ExitCode()
	} else if err != nil {
		ts.Fatalf("%v", err)
	}
	if strconv.Itoa(got) != args[0] {
		ts.Fatalf("exit status %d, want %s", got, args[0])
	}
}
