package papers

import (
	"context"
	"testing"

	"github.com/bkbtuner/bkb/bench/experiment"
	"github.com/bkbtuner/bkb/internal/racetest"
	"github.com/bkbtuner/bkb/learners"
	"github.com/bkbtuner/bkb/learners/falkon"
	"github.com/bkbtuner/bkb/sketch"
)

// There are as many uniform centres as BLESS chooses, and not as few as the model of a
// smooth kernel keeps of them.
func TestAsManyCentersAsBLESS(t *testing.T) {
	racetest.Alone(t)
	ctx, env := context.Background(), &experiment.Env{Seed: 1, Scale: experiment.Quick, Workers: 1}
	data, err := classData(ctx, env, "generator", 300)
	if err != nil {
		t.Fatal(err)
	}
	k, err := gaussian(100 * data.sigma) // of low rank, up to rounding
	if err != nil {
		t.Fatal(err)
	}
	p := falkon.Params{Kernel: k, Lambda: 1e-6, SamplerLambda: 1e-9, Iterations: 3, Epsilon: 1e-6}
	got, errs, err := fitBLESS(ctx, env, p, data, 0)
	if err != nil || len(errs) == 0 {
		t.Fatal(errs, err)
	}
	seed := env.Derive("falkon "+data.name, 0)
	want, err := learners.ChooseCenters(ctx, k, data.train, learners.Sampling{Sampler: sketch.BLESS{}, Lambda: p.SamplerLambda}, seed)
	if err != nil || got != want.Len() {
		t.Fatalf("%d centres, want %d, %v", got, want.Len(), err)
	}
	p.Sampler = sketch.BLESS{}
	model, err := p.Fit(ctx, data.train, learners.Options{Seed: seed})
	if err != nil {
		t.Fatal(err)
	}
	if rank := model.(*learners.Expansion).Centers().Len(); rank >= got {
		t.Errorf("the model has all %d centres: this case shows nothing", rank)
	}
}
