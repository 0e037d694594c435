package runner

import (
	"context"

	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/study"
)

// Service is the part of [tuner.Service] that a run calls. The methods are
// documented there.
type Service interface {
	Study(ctx context.Context, name string) (tuner.Study, error)
	Ask(ctx context.Context, name string, c study.Ask) (tuner.Asked, error)
	Tell(ctx context.Context, name string, c study.Tell) (tuner.Told, error)
	Report(ctx context.Context, name string, c study.ReportValues) (tuner.Verdict, error)
	Heartbeat(ctx context.Context, name string, c study.Heartbeat) (tuner.Verdict, error)
	Trials(ctx context.Context, name string, f tuner.Filter) (trials []study.Trial, more bool, err error)
	Best(ctx context.Context, name string) ([]study.Trial, error)
}

var _ Service = tuner.Service(nil)
