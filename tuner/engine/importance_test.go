package engine

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/bkbtuner/bkb/store/memory"
	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/propose"
	"github.com/bkbtuner/bkb/tuner/study"
	"github.com/bkbtuner/bkb/tuner/surrogate"
)

// TestImportance has a study whose objective is 3x plus a little noise, and checks that both
// measures say so.
func TestImportance(t *testing.T) {
	rng := rand.New(rand.NewPCG(29, 1))
	tn := open(t, memory.New(), Options{}, func(c *study.Spec) {
		c.Proposer = study.Component{Name: propose.BKB, Options: `{"start": 20}`}
	})
	few := must(tn.Importance(t.Context(), "s", tuner.ImportanceQuery{}))
	if few.State != surrogate.Waiting || len(few.Parameters) != 3 || !math.IsNaN(few.Parameters[0].Data) || !math.IsNaN(few.Parameters[0].First) {
		t.Errorf("without results: %+v", few)
	}
	add := func(n int) {
		for range n {
			trial := must(tn.Ask(t.Context(), "s", study.Ask{New: true})).Trials[0]
			tell(t, tn, trial.Number, loss(3*trial.Config.Number("x")+0.01*rng.NormFloat64()))
		}
	}
	add(45)
	i := must(tn.Importance(t.Context(), "s", tuner.ImportanceQuery{}))
	if i.State != surrogate.Ready || i.Objective != "loss" || i.Completed != 45 || i.Position == 0 || i.Results == 0 {
		t.Fatalf("%+v", i)
	}
	x, n, kind := i.Parameters[0], i.Parameters[1], i.Parameters[2]
	if x.Parameter != "x" || x.First < 0.9 || x.Total < 0.9 || n.Total > 0.1 || kind.Total > 0.1 || x.FirstError <= 0 || x.FirstError > 0.1 {
		t.Errorf("by the model: %+v", i.Parameters)
	}
	if x.Data < n.Data || x.Data < kind.Data || math.Abs(x.Data+n.Data+kind.Data-1) > 1e-9 {
		t.Errorf("by the data: %+v", i.Parameters)
	}
	if again := must(tn.Importance(t.Context(), "s", tuner.ImportanceQuery{Method: tuner.ImportanceModel})); again.Parameters[0].First != x.First || !math.IsNaN(again.Parameters[0].Data) {
		t.Errorf("again by the model: %+v", again)
	}
	add(30) // there are model events meanwhile
	if later := must(tn.Importance(t.Context(), "s", tuner.ImportanceQuery{Objective: "loss"})); later.Position <= i.Position || later.Completed != 75 {
		t.Errorf("after more results: %+v", later)
	}
	_, err := tn.Importance(t.Context(), "s", tuner.ImportanceQuery{Objective: "accuracy"})
	wantCode(t, err, tuner.Invalid, "accuracy", "loss")
	sobol := open(t, memory.New(), Options{}, nil)
	_, err = sobol.Importance(t.Context(), "s", tuner.ImportanceQuery{Method: tuner.ImportanceModel})
	wantCode(t, err, tuner.Unsupported)
	if i := must(sobol.Importance(t.Context(), "s", tuner.ImportanceQuery{})); i.State != 0 || len(i.Parameters) != 3 {
		t.Errorf("of a proposer without a model: %+v", i)
	}
}
