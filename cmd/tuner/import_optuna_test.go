package main

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bkbtuner/bkb/cmd/tuner/cli"
	pb "github.com/bkbtuner/bkb/proto/optuna"
)

// A study of Optuna's storage is imported with its space, and again when it has grown.
func TestImportStorage(t *testing.T) {
	dir := shortDir(t)
	c := startChild(t, dir, nil, "--listen", "unix:a.sock", "--optuna", "unix:b.sock")
	client := optunaClient(t, dir, c.state.Optuna)
	ctx := t.Context()
	const (
		rate   = `{"name": "FloatDistribution", "attributes": {"step": null, "low": 1e-05, "high": 1.0, "log": true}}`
		layers = `{"name": "IntDistribution", "attributes": {"log": false, "step": 1, "low": 1, "high": 9}}`
		kind   = `{"name": "CategoricalDistribution", "attributes": {"choices": ["sgd", "adam"]}}`
	)
	create := func(name string) int64 {
		t.Helper()
		r, err := client.CreateNewStudy(ctx, &pb.CreateNewStudyRequest{StudyName: name, Directions: []pb.StudyDirection{pb.StudyDirection_MAXIMIZE}})
		if err != nil {
			t.Fatal(err)
		}
		return r.StudyId
	}
	id := create("Digits & more")
	add := func(n int, state pb.TrialState, value float64) int64 {
		t.Helper()
		trial := &pb.Trial{
			State: state, Params: map[string]float64{"lr": 0.01 * float64(n+1), "layers": float64(n%9 + 1), "kind": float64(n % 2)},
			Distributions:  map[string]string{"lr": rate, "layers": layers, "kind": kind},
			UserAttributes: map[string]string{"note": fmt.Sprintf(`"n%d"`, n)}, IntermediateValues: map[int64]float64{1: value / 2, 7: math.NaN()},
			DatetimeStart: "2026-03-01 12:30:00.123456",
		}
		if state == pb.TrialState_COMPLETE {
			trial.Values = []float64{value}
		}
		r, err := client.CreateNewTrial(ctx, &pb.CreateNewTrialRequest{StudyId: id, TemplateTrial: trial})
		if err != nil {
			t.Fatal(err)
		}
		return r.TrialId
	}
	waiting := add(12, pb.TrialState_WAITING, 0)
	for n := range 12 {
		add(n, pb.TrialState_COMPLETE, float64(n)/16)
	}
	add(12, pb.TrialState_FAIL, 0)
	running := add(13, pb.TrialState_RUNNING, 0)
	if _, err := client.SetStudySystemAttribute(ctx, &pb.SetStudySystemAttributeRequest{StudyId: id, Key: "study:metric_names", Value: `["accuracy"]`}); err != nil {
		t.Fatal(err)
	}
	where := "optuna+grpc://unix:" + filepath.Join(dir, "b.sock")
	do := func(args ...string) (int, string, string) {
		var out, errs bytes.Buffer
		code := run(ctx, append([]string{"--db", filepath.Join(dir, "own.db")}, args...), strings.NewReader(""), &out, &errs)
		return code, out.String(), errs.String()
	}
	if code, _, errs := do("import", "digits", where); code != cli.ExitOK || !strings.Contains(errs, "Created study digits.") || !strings.Contains(errs, "Imported 13 trials.") || !strings.Contains(errs, "Leaving out 2 trials without an outcome") {
		t.Fatalf("%d: %s", code, errs)
	}
	_, out, _ := do("trials", "digits", "-f", "jsonl")
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if want := `"config":{"kind":"adam","layers":6,"lr":0.06},"values":{"accuracy":0.3125},"attributes":{"note":"n5"}`; len(lines) != 13 || !strings.Contains(lines[5], want) {
		t.Errorf("trial 5 is %s, want %s", lines[5], want)
	}
	if _, out, _ := do("studies", "digits"); !strings.Contains(out, "max accuracy") {
		t.Errorf("the study is %s", out)
	}
	// It grows, a running trial ends, the first one starts, and only new ones are imported.
	if _, err := client.SetTrialStateValues(ctx, &pb.SetTrialStateValuesRequest{TrialId: waiting, State: pb.TrialState_RUNNING}); err != nil {
		t.Fatal(err)
	}
	add(14, pb.TrialState_COMPLETE, 0.5)
	if _, err := client.SetTrialStateValues(ctx, &pb.SetTrialStateValuesRequest{TrialId: running, State: pb.TrialState_COMPLETE, Values: []float64{0.25}}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"Imported 2 new trials. 13 were there already.", "Imported no trials. All 15 were there already."} {
		if code, _, errs := do("import", "digits", where, "--optuna-study", "Digits & more"); code != cli.ExitOK || !strings.Contains(errs, want) {
			t.Errorf("%d: %s, want %q", code, errs, want)
		}
	}
	if code, _, errs := do("import", "digits", where, "--optuna-study", "none"); code != cli.ExitNotFound || !strings.Contains(errs, `the storage has no study "none", but "Digits & more"`) {
		t.Errorf("%d: %s", code, errs)
	}
	create("other")
	if code, _, errs := do("import", "digits", where); code != cli.ExitNotFound || !strings.Contains(errs, `several studies, so name one of "Digits & more", "other" (--optuna-study)`) {
		t.Errorf("%d: %s", code, errs)
	}
	if code, _, errs := do("import", "digits", "optuna+grpc://unix:"+filepath.Join(dir, "a.sock")); code != cli.ExitInvalid || !strings.Contains(errs, "does not speak Optuna's storage protocol; use the address of --optuna") {
		t.Errorf("%d: %s", code, errs)
	}
}

// A live study is imported although trials of it lack parameters.
func TestImportLive(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "live.json")
	const f = `{"name": "FloatDistribution", "attributes": {"low": 0, "high": 1, "log": false, "step": null}}`
	text := `{"study_name": "live", "import_id": "s", "directions": ["minimize"], "trials": [
		{"number": 0, "state": "COMPLETE", "values": [1], "params": {"x": 0.5, "y": 0.5}, "distributions": {"x": ` + f + `, "y": ` + f + `}},
		{"number": 1, "state": "RUNNING", "params": {"x": 0.25}, "distributions": {"x": ` + f + `}},
		{"number": 2, "state": "RUNNING", "params": {"x": 0.25, "y": 0.5}, "distributions": {"x": ` + f + `, "y": ` + f + `}},
		{"number": 3, "state": "WAITING", "params": {}, "distributions": {}},
		{"number": 4, "state": "PRUNED", "params": {"x": 0.25}, "distributions": {"x": ` + f + `}}]}`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		db   string
		args []string
		want []string
	}{
		{"a.db", nil, []string{"Leaving out 3 trials without an outcome.", "Leaving out 1 trial with a configuration that the space refuses.", "Imported 1 trial."}},
		{"b.db", []string{"--enqueue"}, []string{"Leaving out 3 trials with a configuration that the space refuses.", "Imported 2 trials."}},
	} {
		var out, errs bytes.Buffer
		code := run(t.Context(), append([]string{"--db", filepath.Join(dir, c.db), "import", "live", file}, c.args...), strings.NewReader(""), &out, &errs)
		for _, want := range c.want {
			if code != cli.ExitOK || !strings.Contains(errs.String(), want) {
				t.Errorf("%v: %d: %s, want %q", c.args, code, errs.String(), want)
			}
		}
	}
	bad := strings.Replace(text, `"values": [1], "params": {"x": 0.5, "y": 0.5}`, `"values": [1], "params": {"x": 0.5, "y": 5}`, 1)
	if err := os.WriteFile(file, []byte(bad), 0o600); err != nil {
		t.Fatal(err)
	}
	var out, errs bytes.Buffer
	if code := run(t.Context(), []string{"--db", filepath.Join(dir, "c.db"), "import", "live", file}, strings.NewReader(""), &out, &errs); code != cli.ExitInvalid || !strings.Contains(errs.String(), "nothing was imported: trial 0: ") {
		t.Errorf("%d: %s", code, errs.String())
	}
}

// An import that cannot make a study tells why, also without a file of studies. A study with
// a new parameter needs a new name.
func TestImportOptunaReasons(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "s.json")
	f := func(high int) string {
		return fmt.Sprintf(`{"name": "FloatDistribution", "attributes": {"low": 0, "high": %d, "log": false, "step": null}}`, high)
	}
	do := func(text, want string, code int) {
		t.Helper()
		if err := os.WriteFile(file, []byte(`{"study_name": "s", "import_id": "s", "directions": ["minimize"], "trials": [`+text+`]}`), 0o600); err != nil {
			t.Fatal(err)
		}
		var out, errs bytes.Buffer
		if got := run(t.Context(), []string{"--db", filepath.Join(dir, "own.db"), "import", "s", file}, strings.NewReader(""), &out, &errs); got != code || !strings.Contains(errs.String(), want) {
			t.Errorf("%d: %s, want %d: %s", got, errs.String(), code, want)
		}
	}
	first := `{"number": 0, "state": "COMPLETE", "values": [1], "params": {"x": 0.5}, "distributions": {"x": ` + f(1) + `}}`
	do(first+`, {"number": 1, "state": "COMPLETE", "values": [1], "params": {"x": 0.5}, "distributions": {"x": `+f(2)+`}}`,
		`parameter "x" has the distribution`, cli.ExitInvalid)
	if _, err := os.Stat(filepath.Join(dir, "own.db")); !os.IsNotExist(err) {
		t.Errorf("the failed import left a file: %v", err)
	}
	do(first, "Imported 1 trial.", cli.ExitOK)
	do(first+`, {"number": 1, "state": "COMPLETE", "values": [1], "params": {"x": 0.5, "y": 1}, "distributions": {"x": `+f(1)+`, "y": `+f(1)+`}}`,
		"import it under a new name", cli.ExitInvalid)
}

// A study of Optuna is exported from a server, and from its file to the same text, which
// import reads.
func TestExportOptuna(t *testing.T) {
	dir := shortDir(t)
	c := startChild(t, dir, nil, "--listen", "unix:a.sock", "--optuna", "unix:b.sock")
	client := optunaClient(t, dir, c.state.Optuna)
	s, err := client.CreateNewStudy(t.Context(), &pb.CreateNewStudyRequest{StudyName: "digits", Directions: make([]pb.StudyDirection, 1)})
	if err != nil {
		t.Fatal(err)
	}
	const weight = `{"name": "CategoricalDistribution", "attributes": {"choices": [null, "balanced"]}}`
	for n := range 3 {
		trial := &pb.Trial{
			State: pb.TrialState_COMPLETE, Values: []float64{float64(n)},
			Params: map[string]float64{"weight": float64(n % 2)}, Distributions: map[string]string{"weight": weight},
			DatetimeStart: "2026-03-01 12:30:00.123456",
		}
		if _, err := client.CreateNewTrial(t.Context(), &pb.CreateNewTrialRequest{StudyId: s.StudyId, TemplateTrial: trial}); err != nil {
			t.Fatal(err)
		}
	}
	do := func(input string, args ...string) (int, string, string) {
		var out, errs bytes.Buffer
		code := run(t.Context(), args, strings.NewReader(input), &out, &errs)
		return code, out.String(), errs.String()
	}
	where := "optuna+grpc://unix:" + filepath.Join(dir, "b.sock")
	code, fromServer, errs := do("", "export", where, "--optuna-study", "digits")
	if code != cli.ExitOK || !strings.Contains(fromServer, `"params":{"weight":"balanced"},"values":[1]`) {
		t.Fatalf("%d: %s%s", code, fromServer, errs)
	}
	if code, _, errs := do("", "--server", "unix:"+filepath.Join(dir, "a.sock"), "export", "optuna.digits"); code != 8 || !strings.Contains(errs, "run tuner export optuna+grpc://ADDRESS") {
		t.Errorf("over a server: %d: %s", code, errs)
	}
	if err := c.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = c.Wait()
	file := []string{"--db", filepath.Join(dir, "tuner.db")}
	if code, out, errs := do("", append(file, "export", "optuna.digits")...); code != cli.ExitOK || out != fromServer {
		t.Errorf("from the file: %d: %s%s, want %s", code, out, errs, fromServer)
	}
	for want, args := range map[string][]string{
		"-f csv: optuna.digits is a study of Optuna":                     {"export", "optuna.digits", "-f", "csv"},
		"--state: optuna.digits is a study of Optuna":                    {"export", "optuna.digits", "--state", "failed"},
		"-f jsonl: " + where + " is a study of Optuna":                   {"export", where, "-f", "jsonl"},
		"--optuna-study needs the address of a storage":                  {"export", "optuna.digits", "--optuna-study", "digits"},
		"-f optuna: only studies of Optuna have this format, and digits": {"export", "digits", "-f", "optuna"},
	} {
		if code, _, errs := do(fromServer, append(file, "import", "digits", "-")...); code != cli.ExitOK || !strings.Contains(errs, "The choice null of parameter weight becomes none.") {
			t.Fatalf("%d: %s", code, errs)
		}
		if code, out, errs := do("", append(file, args...)...); code != cli.ExitUsage || out != "" || !strings.Contains(errs, want) {
			t.Errorf("%v: %d: %s%s", args, code, out, errs)
		}
	}
	if _, out, _ := do("", append(file, "export", "digits")...); strings.Count(out, "\n") != 4 || !strings.Contains(out, "none") {
		t.Errorf("the copy has %s", out)
	}
}
