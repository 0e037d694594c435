package studies

import (
	"testing"

	"github.com/bkbtuner/bkb/cmd/tuner/cli"
	"github.com/bkbtuner/bkb/tuner/study"
)

func TestParseComponent(t *testing.T) {
	for text, want := range map[string]study.Component{
		"sobol":                  {Name: "sobol"},
		`asha:{"factor": 3}`:     {Name: "asha", Options: `{"factor": 3}`},
		"asha:factor=3,min=1e-3": {Name: "asha", Options: `{"factor":3,"min":1e-3}`},
		"x:metric=loss,on=true":  {Name: "x", Options: `{"metric":"loss","on":true}`},
	} {
		got, err := ParseComponent("pruner", text)
		if err != nil || got != want {
			t.Errorf("%s: %v, %v", text, got, err)
		}
	}
	if _, err := ParseComponent("pruner", "x:y"); cli.StatusOf(err) != cli.ExitUsage {
		t.Errorf("x:y: %v", err)
	}
}
