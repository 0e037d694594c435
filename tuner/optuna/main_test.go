package optuna

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/bkbtuner/bkb/tuner/space"
	"github.com/bkbtuner/bkb/tuner/study"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// spec is that of a study of this service.
func spec(t *testing.T) study.Spec {
	t.Helper()
	sp, err := space.New(space.NewFloat("x", 0, 1))
	if err != nil {
		t.Fatal(err)
	}
	return study.Spec{Space: sp, Objectives: []study.Objective{{Name: "y", Direction: study.Minimize}}}
}
