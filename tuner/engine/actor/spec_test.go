package actor

import (
	"testing"

	"github.com/bkbtuner/bkb/tuner/propose"
	"github.com/bkbtuner/bkb/tuner/space"
	"github.com/bkbtuner/bkb/tuner/study"
)

func testSpec(t testing.TB, change func(*study.Spec)) study.Spec {
	t.Helper()
	sp, err := space.New(space.NewFloat("x", 0, 1), space.NewInt("n", 1, 1000).WithScale(space.Log),
		space.NewCategorical("kind", space.String("a"), space.String("b"), space.String("c")))
	if err != nil {
		t.Fatal(err)
	}
	spec := study.Spec{Space: sp, Objectives: []study.Objective{{Name: "loss", Direction: study.Minimize}}, Seed: 7, MaxRetries: 1, Proposer: study.Component{Name: propose.Sobol}}
	if change != nil {
		change(&spec)
	}
	return spec
}
