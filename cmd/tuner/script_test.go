package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/bkbtuner/bkb/internal/datatest"
	"github.com/bkbtuner/bkb/internal/gpu"
	"github.com/bkbtuner/bkb/internal/pgtest"
	"github.com/bkbtuner/bkb/internal/racetest"
	"github.com/rogpeppe/go-internal/testscript"
)

func TestMain(m *testing.M) {
	testscript.Main(stopping{m}, map[string]func(){
		"tuner": main,
	})
}

// stopping are the tests, after which the database of the scripts stops.
type stopping struct{ *testing.M }

func (s stopping) Run() int {
	racetest.Waiting()
	code := s.M.Run()
	if scripted.Load() {
		if server, err := database(); err == nil {
			server.Stop()
		}
	}
	return code
}

// database is the server of the scripts that need one. It syncs, as the program demands.
var (
	database = sync.OnceValues(func() (*pgtest.Server, error) { return pgtest.Start() })
	scripted atomic.Bool // a script called store
	schemas  atomic.Int64
)

// useDatabase is the command of scripts that sets $STORE to the address of a schema
// without tables, and $LOCKED to one whose password is wrong.
func useDatabase(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) > 0 {
		ts.Fatalf("usage: database")
	}
	scripted.Store(true)
	server, err := database()
	if err != nil {
		ts.Fatalf("%v", err)
	}
	ts.Setenv("STORE", fmt.Sprintf("%s?schema=s%d", server.Address(), schemas.Add(1)))
	ts.Setenv("LOCKED", strings.Replace(server.Address(), "bkb@", pgtest.LockedUser+":geheim@", 1))
}

// TestScripts runs the transcripts in testdata/script. UPDATE_SCRIPTS=1 rewrites the
// expected output.
func TestScripts(t *testing.T) {
	t.Parallel() // with the tests that wait
	testscript.Run(t, testscript.Params{
		Dir:           "testdata/script",
		UpdateScripts: os.Getenv("UPDATE_SCRIPTS") != "",
		Setup:         setup,
		Condition:     condition,
		Cmds:          map[string]func(*testscript.TestScript, bool, []string){"status": status, "database": useDatabase},
	})
}

// condition evaluates the conditions of scripts. The data are there if [data], a Python
// with gRPC is if [python], the program has CUDA if [cuda], and long scripts are wanted if
// [long]. PostgreSQL is installed if [postgres].
func condition(name string) (bool, error) {
	switch name {
	case "data":
		return datatest.Find() != "", nil
	case "python":
		return exec.Command(python(), "-c", "import grpc, grpc_tools").Run() == nil, nil
	case "cuda":
		return gpu.Registered() != nil, nil
	case "postgres":
		return pgtest.Available(), nil
	case "long":
		return os.Getenv("BKB_LONG") != "", nil
	}
	return false, errors.New("the only conditions are cuda, data, postgres, python and long")
}

// python is the interpreter that $TUNER_PYTHON names, else python3.
func python() string {
	if name := os.Getenv("TUNER_PYTHON"); name != "" {
		return name
	}
	return "python3"
}

// setup gives a script the examples, the folder of real data as $BKB_DATA, the
// interpreter as $TUNER_PYTHON, and the folder of the wire contract as $PROTO.
func setup(env *testscript.Env) error {
	folder := datatest.Find()
	if folder != "" { // a script runs elsewhere
		var err error
		if folder, err = filepath.Abs(folder); err != nil {
			return err
		}
	}
	env.Setenv("BKB_DATA", folder)
	env.Setenv("COLUMNS", "80") // as on a terminal
	env.Setenv("TUNER_PYTHON", python())
	env.Setenv("PYTHONDONTWRITEBYTECODE", "1")
	proto, err := filepath.Abs("../../proto/tuner/v1")
	if err != nil {
		return err
	}
	env.Setenv("PROTO", proto)
	return os.CopyFS(env.WorkDir, os.DirFS("../../examples"))
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
