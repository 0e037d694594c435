package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/bkbtuner/bkb/cmd/tuner/cli"
	"github.com/bkbtuner/bkb/internal/pgtest"
)

var newStore = flag.Bool("new-store", false, "write the store of the present version, if there is none")

// A store of the first release, as its program wrote it, and what that program said of it.
// They are never written again.
const (
	oldStore   = "testdata/store-0.1.0.db.gz"
	oldAnswers = "testdata/store-0.1.0.json.gz"
)

// makeOldStore fills a file with studies of each kind.
func makeOldStore(t *testing.T, dir string, tuner func(args ...string) string) {
	t.Helper()
	for name, text := range map[string]string{
		"mixed.yaml": `parameters:
  lr: {type: float, low: 1e-5, high: 1, scale: log}
  layers: {type: int, low: 1, high: 8}
  optimizer: {type: categorical, values: [sgd, adam, "ä, b"]}
  momentum: {type: float, low: 0, high: 0.99, when: {optimizer: sgd}}
constraints: [layers * lr <= 4]
`,
		"small.yaml": "parameters: {x: {type: float, low: 0, high: 1}, c: {type: categorical, values: [1, 2.5, true, abc]}}\n",
		"told.csv":   "config.x,config.c,value.loss\n0.125,abc,3\n0.25,true,2.5\n",
	} {
		writePrivate(t, filepath.Join(dir, name), text)
	}
	at := func(name string) string { return filepath.Join(dir, name) }
	create := func(name, space string, flags ...string) {
		tuner(append([]string{"create-study", name, "--space", at(space), "--seed", "7"}, flags...)...)
	}
	// ask returns what a told trial needs.
	ask := func(name string) (number string, config map[string]any) {
		var trial struct {
			Trial  int
			Config map[string]any
		}
		if err := json.Unmarshal([]byte(tuner("ask", name, "--worker", "wörker")), &trial); err != nil {
			t.Fatal(err)
		}
		return fmt.Sprint(trial.Trial), trial.Config
	}
	create("mixed", "mixed.yaml", "--minimize", "loss", "--max-trials", "40", "--proposer", "bkb:start=4", "--pruner", "median", "--constraint", "latency <= 50", "--lease", "10s", "--attr", "team=grün")
	for i := range 14 {
		number, config := ask("mixed")
		loss := fmt.Sprintf("loss=%v", float64(i%5)+config["lr"].(float64))
		switch i {
		case 3:
			tuner("tell", "mixed", number, "--state", "failed", "--message", "out of memory\nat line 3")
		case 5:
			tuner("tell", "mixed", number, "--state", "infeasible")
		case 7:
			tuner("report", "mixed", number, "--step", "1", "loss=4.5")
			tuner("report", "mixed", number, "--step", "2", "loss=3.25")
			tuner("tell", "mixed", number, "--state", "pruned")
		case 9:
			tuner("tell", "mixed", number, loss+"±0.25", "latency=inf", "--cost", "2.5")
		default:
			tuner("tell", "mixed", number, loss, fmt.Sprintf("latency=%d", 10*i))
		}
	}
	tuner("note", "mixed", "2", "seen=yes")
	ask("mixed") // it runs when the program is replaced, and its lease is over then
	create("two", "small.yaml", "--minimize", "loss", "--maximize", "accuracy", "--proposer", "bkb")
	for i := range 8 {
		number, _ := ask("two")
		tuner("tell", "two", number, fmt.Sprintf("loss=%d", i), fmt.Sprintf("accuracy=0.%d", 9-i))
	}
	for _, proposer := range []string{"random", "sobol", "grid"} {
		create(proposer, "small.yaml", "--minimize", "loss", "--proposer", proposer)
		number, _ := ask(proposer)
		tuner("tell", proposer, number, "1.5,2.5")
	}
	tuner("finish", "random")
	tuner("pause", "sobol")
	tuner("enqueue", "grid", "x=0.75", "c=abc")
	tuner("import", "grid", at("told.csv"))
	create("empty", "small.yaml", "--minimize", "loss")
	create("deleted", "small.yaml", "--minimize", "loss")
	tuner("delete-study", "deleted", "--yes")
}

// answers are the studies of a file, and the trials of each by its name.
func answers(t *testing.T, tuner func(args ...string) string) map[string]any {
	t.Helper()
	all := make(map[string]any)
	ask := func(args ...string) (list []any) {
		if err := json.Unmarshal([]byte(tuner(append(args, "-f", "json")...)), &list); err != nil {
			t.Fatal(err)
		}
		return list
	}
	studies := ask("studies")
	for _, s := range studies {
		s := s.(map[string]any)
		delete(s, "told_last_hour")
		name := s["name"].(string)
		all[name] = ask("trials", name)
	}
	all["all studies"] = studies
	return all
}

// within reports the first place where a value lacks or changes something of an old one. A new
// field is no difference.
func within(place string, old, now any) error {
	switch old := old.(type) {
	case map[string]any:
		now, _ := now.(map[string]any)
		for _, key := range slices.Sorted(maps.Keys(old)) {
			if err := within(place+"."+key, old[key], now[key]); err != nil {
				return err
			}
		}
		return nil
	case []any:
		now, _ := now.([]any)
		if len(now) != len(old) {
			return fmt.Errorf("%s has %d elements, and had %d", place, len(now), len(old))
		}
		for i := range old {
			if err := within(fmt.Sprintf("%s[%d]", place, i), old[i], now[i]); err != nil {
				return err
			}
		}
		return nil
	}
	if !reflect.DeepEqual(old, now) {
		return fmt.Errorf("%s is %v, and was %v", place, now, old)
	}
	return nil
}

// TestStoreOfFirstRelease opens the store of 0.1.0. The studies are as they were, they go on,
// and a backup, a copy and a compaction have them all.
func TestStoreOfFirstRelease(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "tuner.db")
	on := func(place ...string) func(args ...string) string {
		return func(args ...string) string {
			t.Helper()
			var stdout, stderr bytes.Buffer
			if status := run(t.Context(), slices.Concat(place, args), strings.NewReader(""), &stdout, &stderr); status != cli.ExitOK {
				t.Fatalf("%v: status %d: %s", args, status, &stderr)
			}
			return stdout.String()
		}
	}
	tuner := on("--db", file)
	if _, err := os.Stat(oldStore); errors.Is(err, os.ErrNotExist) && *newStore {
		makeOldStore(t, dir, tuner)
		time.Sleep(11 * time.Second) // until the lease of the running trial is over, as it is ever after
		text, err := json.Marshal(answers(t, tuner))
		if err != nil {
			t.Fatal(err)
		}
		db, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		pack(t, oldStore, db)
		pack(t, oldAnswers, text)
		return
	}
	writePrivate(t, file, string(unpack(t, oldStore)))
	var old map[string]any
	if err := json.Unmarshal(unpack(t, oldAnswers), &old); err != nil {
		t.Fatal(err)
	}
	same := func(what string, tuner func(args ...string) string) {
		t.Helper()
		if err := within(what, old, answers(t, tuner)); err != nil {
			t.Error(err)
		}
	}
	if out := tuner("check"); !strings.HasPrefix(out, "OK: 6 studies, 29 trials, ") {
		t.Errorf("check: %s", out)
	}
	same("the store", tuner)
	backup := filepath.Join(dir, "backup.db")
	tuner("backup", backup)
	restored, copied := on("--db", filepath.Join(dir, "restored.db")), filepath.Join(dir, "copied.db")
	restored("restore", backup)
	same("its backup", restored)
	on()("copy", "--from", file, "--to", copied)
	same("its copy", on("--db", copied))
	tuner("compact")
	same("it after a compaction", tuner)
	if pgtest.Available() {
		address := newDatabase(t)
		on()("copy", "--from", file, "--to", address)
		same("a database", on("--store", address))
	}
	for _, name := range []string{"mixed", "two", "grid", "empty"} {
		var trial struct{ Trial int }
		if err := json.Unmarshal([]byte(tuner("ask", name)), &trial); err != nil {
			t.Fatal(err)
		}
		values := []string{"loss=0.5"}
		if name == "two" {
			values = append(values, "accuracy=1")
		}
		tuner(append([]string{"tell", name, fmt.Sprint(trial.Trial)}, values...)...)
	}
	tuner("resume", "sobol")
	tuner("diagnose", "mixed")
	tuner("check")
}

func pack(t *testing.T, path string, text []byte) {
	t.Helper()
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, err := w.Write(text)
	if err := errors.Join(err, w.Close(), os.WriteFile(path, packed.Bytes(), 0o644)); err != nil {
		t.Fatal(err)
	}
}

func unpack(t *testing.T, path string) []byte {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatalf("%v; write it with go test ./cmd/tuner -run %s -new-store", err, t.Name())
	}
	defer f.Close()
	r, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return text
}
