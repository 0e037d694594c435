package studies

import (
	"testing"

	"github.com/bkbtuner/bkb/tuner/space"
)

func TestDemoHasTheOptimumItNames(t *testing.T) {
	c := space.NewConfig(space.Assignment{Name: "lr", Value: space.Float(0.003)}, space.Assignment{Name: "batch", Value: space.Int(64)},
		space.Assignment{Name: "optimizer", Value: space.String("adam")})
	if got := simulatedLoss(c); got != 0.1 {
		t.Errorf("%v", got)
	}
	if _, _, err := space.Parse([]byte(demoSpace)); err != nil {
		t.Error(err)
	}
}
