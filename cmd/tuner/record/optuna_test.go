package record_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bkbtuner/bkb/cmd/tuner/record"
	"github.com/bkbtuner/bkb/tuner/study"
)

func readOptuna(t *testing.T, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	if form := record.Detect(data); form != record.Optuna {
		t.Fatalf("%s is taken for %s", name, form)
	}
	return data
}

// A full export of a study whose parameters depend on each other has a space with these
// conditions, and the other exports of the study have the same trials.
func TestOptunaExports(t *testing.T) {
	full := readOptuna(t, "optuna-full.json")
	sp, objectives, ok, err := record.OptunaStudy(full)
	if err != nil || !ok {
		t.Fatal(ok, err)
	}
	if len(objectives) != 1 || objectives[0].Name != "value" || objectives[0].Direction != study.Minimize {
		t.Errorf("objectives %v", objectives)
	}
	want := map[string]string{"momentum": "optimizer sgd", "width_1": "layers 2 3", "width_2": "layers 3"}
	for _, p := range sp.Parameters() {
		got := ""
		for _, c := range p.When {
			got += c.Parent
			for _, v := range c.Values {
				got += " " + v.String()
			}
		}
		if got != want[p.Name] {
			t.Errorf("%s is active when %q, want %q", p.Name, got, want[p.Name])
		}
	}
	counts := map[string]int{}
	adds := map[string][]study.Add{}
	for _, name := range []string{"optuna-full.json", "optuna-trials.json", "optuna-flat.json"} {
		for item, err := range record.Read(readOptuna(t, name), record.Optuna) {
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			add, err := item.Trial.Bind(objectives).Add(sp)
			if err != nil { // the one that failed before it had all parameters
				if item.Where != "trial 8" || item.Trial.State != "failed" {
					t.Errorf("%s: %s: %v", name, item.Where, err)
				}
				continue
			}
			if name == "optuna-full.json" {
				counts[item.Trial.State]++
				if steps := len(add.Reports); item.Trial.State == "completed" && steps != 3 {
					t.Errorf("%s has %d reports", item.Where, steps)
				}
			}
			add.Reports = nil // the command line of Optuna does not print them
			adds[name] = append(adds[name], add)
		}
	}
	if counts["completed"] != 9 || counts["pruned"] != 1 || counts["failed"] != 1 {
		t.Errorf("states %v", counts)
	}
	for name, list := range adds {
		if len(list) != 11 {
			t.Errorf("%s has %d trials", name, len(list))
			continue
		}
		for i, a := range list {
			b := adds["optuna-full.json"][i]
			if !a.Config.Equal(b.Config) || a.Outcome.String() != b.Outcome.String() || a.Attributes["note"] != b.Attributes["note"] {
				t.Errorf("%s: trial %d is %v, want %v", name, i, a, b)
			}
		}
	}
}

// Two objectives have the flat fields values_0 and values_1.
func TestOptunaFlatObjectives(t *testing.T) {
	objectives := []study.Objective{{Name: "a"}, {Name: "b", Direction: study.Maximize}}
	n := 0
	for item, err := range record.Read(readOptuna(t, "optuna-front.json"), record.Optuna) {
		if err != nil {
			t.Fatal(err)
		}
		r := item.Trial.Bind(objectives)
		x, _ := r.Config.Get("x")
		v, _ := x.AsFloat()
		if len(r.Values["a"]) != 1 || r.Values["a"][0] != v || r.Values["b"][0] != 1-v {
			t.Errorf("%s: x = %v has the values %v", item.Where, v, r.Values)
		}
		n++
	}
	if n != 5 {
		t.Errorf("%d trials", n)
	}
}

// Errors name the parameter, the trials and the remedy.
func TestOptunaSpaceRefused(t *testing.T) {
	const head = `{"directions": ["minimize"], "trials": [`
	lr := func(high string) string {
		return `{"lr": {"name": "FloatDistribution", "attributes": {"low": 0, "high": ` + high + `, "log": false, "step": null}}}`
	}
	for name, c := range map[string]struct{ text, want string }{
		"two ranges": {
			head + `{"number": 0, "state": "COMPLETE", "params": {"lr": 0.5}, "values": [1], "distributions": ` + lr("1") + `},
				{"number": 7, "state": "COMPLETE", "params": {"lr": 1.5}, "values": [1], "distributions": ` + lr("2") + `}]}`,
			`parameter "lr" has the distribution `,
		},
		"no reason": {
			head + `{"number": 0, "state": "COMPLETE", "params": {"lr": 0.5}, "values": [1], "distributions": ` + lr("1") + `},
				{"number": 3, "state": "COMPLETE", "params": {}, "values": [1], "distributions": {}}]}`,
			`trial 3 has no parameter "lr", and no other parameter decides whether it is there; write a search space with a condition`,
		},
	} {
		_, _, ok, err := record.OptunaStudy([]byte(c.text))
		if ok || err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "tuner create-study") {
			t.Errorf("%s: %t, %v", name, ok, err)
		}
	}
}

func TestIsSQLite(t *testing.T) {
	for text, want := range map[string]bool{"SQLite format 3\x00\x10": true, "SQLite format 3": false, "": false, "[]": false} {
		if got := record.IsSQLite([]byte(text)); got != want {
			t.Errorf("%q: %t", text, got)
		}
	}
}

// The choice null, which is None in Python, becomes none in spaces and trials.
func TestOptunaNull(t *testing.T) {
	const choices = `"choices": ["balanced", null, 1.5]`
	for name, text := range map[string]string{
		"long": `{"study_name": "s", "directions": ["minimize"], "trials": [{"number": 0, "state": "COMPLETE", "values": [1], "params": {"weight": null},
			"distributions": {"weight": {"name": "CategoricalDistribution", "attributes": {` + choices + `}}}}]}`,
		"short": `{"directions": ["minimize"], "space": {"weight": {"type": "categorical", ` + choices + `}},
			"trials": [{"number": 0, "state": "COMPLETE", "values": [1], "params": {"weight": null}}]}`,
		"flat": `{"directions": ["minimize"], "space": {"weight": {"type": "categorical", ` + choices + `}},
			"trials": [{"number": 0, "state": "COMPLETE", "values_0": 1, "params_weight": null}]}`,
	} {
		data := []byte(text)
		sp, objectives, ok, err := record.OptunaStudy(data)
		if !ok || err != nil {
			t.Errorf("%s: %t, %v", name, ok, err)
			continue
		}
		if values := sp.Parameters()[0].Values; len(values) != 3 || values[1].String() != "none" {
			t.Errorf("%s: the values are %v", name, values)
		}
		if _, nulls := record.OptunaSource(data); len(nulls) != 1 || nulls[0] != "weight" {
			t.Errorf("%s: null is in %v", name, nulls)
		}
		for item, err := range record.Read(data, record.Optuna) {
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			add, err := item.Trial.Bind(objectives).Add(sp)
			if v, _ := add.Config.Get("weight"); err != nil || v.String() != "none" {
				t.Errorf("%s: %v, %v", name, add.Config, err)
			}
		}
	}
	both := `{"directions": ["minimize"], "space": {"weight": {"type": "categorical", "choices": [null, "none"]}}, "trials": []}`
	if _, _, _, err := record.OptunaStudy([]byte(both)); err == nil || !strings.Contains(err.Error(), `parameter "weight" has the choices null and "none"`) {
		t.Errorf("both: %v", err)
	}
}
