package runner

import (
	"slices"
	"strings"
	"testing"

	"github.com/bkbtuner/bkb/tuner/space"
	"github.com/bkbtuner/bkb/tuner/study"
)

func testSpace(t *testing.T) *space.Space {
	t.Helper()
	sp, _, err := space.Parse([]byte(`
version: 1
parameters:
  lr: {type: float, low: 1e-5, high: 1, scale: log}
  optimizer: {type: categorical, values: [sgd, adam]}
  momentum: {type: float, low: 0, high: 0.99, when: {optimizer: sgd}}
`))
	if err != nil {
		t.Fatal(err)
	}
	return sp
}

func TestArguments(t *testing.T) {
	sgd := space.NewConfig(space.Assignment{Name: "lr", Value: space.Float(0.01)}, space.Assignment{Name: "optimizer", Value: space.String("sgd")},
		space.Assignment{Name: "momentum", Value: space.Float(0.9)})
	adam := space.NewConfig(space.Assignment{Name: "lr", Value: space.Float(1e-5)}, space.Assignment{Name: "optimizer", Value: space.String("adam")})
	for _, c := range []struct {
		command string
		config  space.Config
		want    string
	}{
		{"train --lr {lr} --opt={optimizer}", sgd, "train --lr 0.01 --opt=sgd"},
		{"train --lr {lr} --opt={optimizer}", adam, "train --lr 1e-05 --opt=adam"},
		{"train --momentum {momentum} x", sgd, "train --momentum 0.9 x"},
		{"train --momentum {momentum} x", adam, "train x"},
		{"train --momentum={momentum} x", adam, "train x"},
		{"train plain {momentum} x", adam, "train plain x"},
		{"train {args}", sgd, "train --lr=0.01 --momentum=0.9 --optimizer=sgd"},
		{"train out/{study}-{trial}-{epoch}.json", adam, "train out/digits-7-2.json"},
		{"awk {{print}} {{{lr}}}", sgd, "awk {print} {0.01}"},
	} {
		cmd, err := ParseCommand("digits", testSpace(t), strings.Fields(c.command))
		if err != nil {
			t.Errorf("%s: %v", c.command, err)
			continue
		}
		got := cmd.Arguments(study.Trial{Number: 7, Epoch: 2, Config: c.config})
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s: got %q, want %q", c.command, got, c.want)
		}
	}
}

func TestEnvironment(t *testing.T) {
	cmd, err := ParseCommand("digits", testSpace(t), []string{"train"})
	if err != nil {
		t.Fatal(err)
	}
	adam := space.NewConfig(space.Assignment{Name: "lr", Value: space.Float(1e-5)}, space.Assignment{Name: "optimizer", Value: space.String("adam")})
	got := cmd.Environment(study.Trial{Number: 7, Epoch: 2, Config: adam})
	want := []string{
		"TUNER_STUDY=digits", "TUNER_TRIAL=7", "TUNER_EPOCH=2", `TUNER_CONFIG={"lr":1e-05,"optimizer":"adam"}`,
		"TUNER_PARAM_LR=1e-05", "TUNER_PARAM_OPTIMIZER=adam",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q\nwant %q", got, want)
	}
}

func TestCommandsThatAreRefused(t *testing.T) {
	for command, message := range map[string]string{
		"train {rate}":      `there is no parameter "rate"; there are lr, optimizer, momentum, and trial, epoch, study, args`,
		"train {lr":         "{ without a }",
		"train lr}":         "} without a {",
		"train --x={args}":  "must be an argument of its own",
		"awk {print}":       "Write {{ and }} for braces",
		"train {} {lr}":     `no parameter ""`,
		"train {lr}{{{args": "{ without a }",
	} {
		if _, err := ParseCommand("digits", testSpace(t), strings.Fields(command)); err == nil || !strings.Contains(err.Error(), message) {
			t.Errorf("%s: %v; want %q", command, err, message)
		}
	}
	sp, err := space.New(space.NewFloat("a-b", 0, 1), space.NewFloat("A_B", 0, 1))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ParseCommand("s", sp, nil); err == nil || !strings.Contains(err.Error(), "TUNER_PARAM_A_B") {
		t.Errorf("two parameters with one variable: %v", err)
	}
}

// TestValuesAreNoCode checks that no value of a study becomes code of a shell or another
// interpreter. A program gets it as it is.
func TestValuesAreNoCode(t *testing.T) {
	values := func(texts ...string) *space.Space {
		var list []space.Value
		for _, text := range append(texts, "fine") {
			list = append(list, space.String(text))
		}
		sp, err := space.New(space.NewCategorical("c", list...), space.NewFloat("lr", 0, 1))
		if err != nil {
			t.Fatal(err)
		}
		return sp
	}
	codes := [][]string{
		{"sh", "-c", "echo {c}"},
		{"/bin/bash", "-ec", "x=\"{c}\""},
		{"env", "A=1", "dash", "-e", "-c", "{c}"},
		{"ssh", "host", "train", "{c}"},
		{"python3.12", "-c", "print({c})"},
		{"perl", "-e", "{c}"},
		{"docker", "run", "image", "sh", "-lc", "train --c={c}"},
		{"bash", "-cx", "echo {c}"},
		{"bash", "-o", "pipefail", "-ceu", "echo {c}"},
		{"sh", "-c", "-x", "echo {c}"},
		{"sh", "-c", "--", "echo {c}"},
		{"perl", "-E", "say q[{c}]"},
		{"node", "--eval", "log({c})"},
		{"php", "-r", "echo {c};"},
		{"awk", `BEGIN {{system("train {c}")}}`},
		{"gawk", "-F", ":", `{{print "{c}"}}`},
	}
	for _, bad := range []string{"$(id)", "`id`", "a;id", "a|id", "a&id", `a"b`, "a'b", `a\b`, "a>b", "#{id}"} {
		for _, code := range codes {
			if _, err := ParseCommand("s", values(bad), code); err == nil || !strings.Contains(err.Error(), "may run as code") || !strings.Contains(err.Error(), "TUNER_PARAM_C") {
				t.Errorf("%q with %q: %v", code, bad, err)
			}
		}
		for _, fine := range [][]string{{"train", "--c", "{c}"}, {"python3", "train.py", "{c}"}, {"sh", "train.sh", "{c}"}, {"sh", "-c", "train {lr}"}, {"train", "-c", "{c}"}, {"sh", "-c", `train "$1"`, "sh", "{c}"}, {"python3", "train.py", "-c", "{c}"}, {"sh", "-e", "train.sh", "{c}"}, {"awk", "-f", "train.awk", "{c}"}} {
			if _, err := ParseCommand("s", values(bad), fine); err != nil {
				t.Errorf("%q with %q: %v", fine, bad, err)
			}
		}
	}
	for _, code := range codes {
		if _, err := ParseCommand("s", values("adam w", "facebook/opt-125m", "relu6", "[64,64]"), code); err != nil {
			t.Errorf("%q: %v", code, err)
		}
	}
}
