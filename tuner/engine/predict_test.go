package engine

import (
	"math"
	"testing"

	"github.com/bkbtuner/bkb/store/memory"
	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/propose"
	"github.com/bkbtuner/bkb/tuner/space"
	"github.com/bkbtuner/bkb/tuner/study"
	"github.com/bkbtuner/bkb/tuner/surrogate"
)

// TestPredict checks predictions and slices before and after there is a model, and requests
// that are refused.
func TestPredict(t *testing.T) {
	tn := open(t, memory.New(), Options{}, func(c *study.Spec) { c.Proposer.Name = propose.BKB })
	p := must(tn.Predict(t.Context(), "s", tuner.PredictQuery{Slices: &tuner.SliceQuery{}}))
	if p.State != surrogate.Waiting || p.Missing == 0 || len(p.Slices) != 0 || p.Trial != tuner.NoTrial {
		t.Errorf("without a model: %+v", p)
	}
	for range 20 {
		trial := must(tn.Ask(t.Context(), "s", study.Ask{New: true})).Trials[0]
		x := trial.Config.Number("x")
		tell(t, tn, trial.Number, loss((x-0.3)*(x-0.3)))
	}
	best := must(tn.Best(t.Context(), "s"))[0]
	p = must(tn.Predict(t.Context(), "s", tuner.PredictQuery{Configs: []space.Config{best.Config}, Slices: &tuner.SliceQuery{Points: 11}}))
	if p.State != surrogate.Ready || p.Trial != best.Number || !p.Through.Equal(best.Config) || len(p.Slices) != 3 || p.Results != 20 {
		t.Fatalf("with a model: %+v", p)
	}
	if got := p.Configs[0].Mean[0]; math.Abs(got) > 0.05 || p.Configs[0].StdDev[0] <= 0 {
		t.Errorf("at the best trial the model predicts %v", p.Configs[0])
	}
	least := 0
	for k, at := range p.Slices[0].At {
		if p.Slices[0].Predictions[k].Mean[0] < p.Slices[0].Predictions[least].Mean[0] {
			least = k
		}
		if v, _ := p.Slices[0].Values[k].AsFloat(); math.Abs(v-at) > 1e-9 {
			t.Errorf("the value at %v is %v", at, v)
		}
	}
	if at := p.Slices[0].At[least]; math.Abs(at-0.3) > 0.11 {
		t.Errorf("along x the model is least at %v, want 0.3", at)
	}
	for _, c := range []struct {
		q     tuner.PredictQuery
		words []string
	}{
		{tuner.PredictQuery{Configs: []space.Config{space.NewConfig()}}, []string{"configuration 0"}},
		{tuner.PredictQuery{Slices: &tuner.SliceQuery{Points: 1}}, []string{"points", "2 to 1001"}},
		{tuner.PredictQuery{Slices: &tuner.SliceQuery{Parameters: []string{"y"}}}, []string{"y", "no such parameter"}},
		{tuner.PredictQuery{Configs: make([]space.Config, tuner.MaxPredictions+1)}, []string{"20000"}},
	} {
		_, err := tn.Predict(t.Context(), "s", c.q)
		wantCode(t, err, tuner.Invalid, c.words...)
	}
	other := open(t, memory.New(), Options{}, nil)
	_, err := other.Predict(t.Context(), "s", tuner.PredictQuery{})
	wantCode(t, err, tuner.Unsupported, "sobol")
	_, err = other.Predict(t.Context(), "none", tuner.PredictQuery{})
	wantCode(t, err, tuner.NotFound)
}
