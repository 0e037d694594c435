package wiretest

import (
	"context"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"slices"
	"testing"

	"github.com/bkbtuner/bkb/store/memory"
	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/artifacts"
	"github.com/bkbtuner/bkb/tuner/engine"
	"github.com/bkbtuner/bkb/tuner/propose"
	"github.com/bkbtuner/bkb/tuner/space"
	"github.com/bkbtuner/bkb/tuner/study"
	"github.com/bkbtuner/bkb/tuner/surrogate"
)

// Service is a service in memory with random suggestions. What a model or the columns of an
// engine would answer is made up, so that every field of it has a value.
type Service struct {
	*engine.Engine

	// BackupData is what Backup writes.
	BackupData []byte
}

var _ tuner.Service = (*Service)(nil)

// New returns a Service without studies, which ends with the test.
func New(t testing.TB) *Service {
	s := &Service{Engine: engine.Open(memory.New(), engine.Options{Artifacts: artifacts.New(filepath.Join(t.TempDir(), "a"), 1<<20)})}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// CreateStudy implements [tuner.Service].
func (s *Service) CreateStudy(ctx context.Context, name string, c study.Create) (tuner.Created, error) {
	if c.Spec.Proposer.Name == "" {
		c.Spec.Proposer.Name = propose.Random
	}
	return s.Engine.CreateStudy(ctx, name, c)
}

// Ask implements [tuner.Service].
func (s *Service) Ask(ctx context.Context, name string, c study.Ask) (tuner.Asked, error) {
	if c.Count == tuner.AutoCount {
		c.Count = 1
	}
	asked, err := s.Engine.Ask(ctx, name, c)
	if err == nil {
		asked.UsefulWorkers, asked.Warnings, asked.Noise = 4, []string{"no cost"}, []float64{0.25}
	}
	return asked, err
}

// Diagnose implements [tuner.Service]. The proposer has no model, except in studies with a
// seed, where the diagnosis is made up from it.
func (s *Service) Diagnose(ctx context.Context, name string) (out surrogate.Diagnosis, err error) {
	v, err := s.modelled(ctx, name)
	if err != nil {
		return out, err
	}
	seed, x := int(v.Spec.Seed), float64(v.Spec.Seed)
	return surrogate.Diagnosis{
		State: surrogate.Ready, Missing: 4, Position: study.Position(seed), EventResults: 3, LengthScales: map[string]float64{"lr": x},
		Results: seed, InducingPoints: 2, Capped: true, EffectiveDimension: x + 0.25,
		InformationGain: x + 0.5, Noise: x + 0.75, Beta: x + 1, TheoryBeta: x + 2, Gap: x + 3,
		Warnings: []string{"no cost", fmt.Sprint("seed ", seed)}, Covered: 7, Predicted: seed + 8, Calibration: x + 4,
		PriorMean: x, Outliers: seed + 2, Idle: seed + 6, Stuck: true, Failures: seed + 5, AvoidsFailures: true,
		Metrics: []surrogate.LimitedMetric{{Metric: "latency", Results: seed, Broken: 2, Noise: x + 5}, {Metric: "size"}},
		Draw: surrogate.Draw{
			Sampler: "bless", Lambda: x * 1e-6, Rows: seed + 9, Read: seed + 4,
			Path: []surrogate.Step{{Lambda: 0.5, Points: 3, Dimension: x}, {Lambda: x * 1e-6, Points: 5, Dimension: x + 1}},
		},
	}, nil
}

// modelled returns a study with a seed, and refuses others.
func (s *Service) modelled(ctx context.Context, name string) (tuner.Study, error) {
	v, err := s.Study(ctx, name)
	if err == nil && v.Spec.Seed == 0 {
		err = fmt.Errorf("a model: %w", tuner.ErrUnsupported)
	}
	return v, err
}

// Columns implements [tuner.Service]. It has the state of every trial and no other column.
func (s *Service) Columns(ctx context.Context, name string, q tuner.ColumnQuery) (tuner.Columns, error) {
	if !slices.Contains(q.Names, "none") {
		q.Names = []string{"state"}
	}
	out, err := s.Engine.Columns(ctx, name, q)
	if err == nil {
		out.Columns[0].Ticks = []space.Tick{{At: 0.5, Value: space.Int(7)}}
	}
	return out, err
}

// Predict implements [tuner.Service]. It makes up a prediction for every configuration, and
// a slice.
func (s *Service) Predict(ctx context.Context, name string, q tuner.PredictQuery) (out tuner.Predictions, err error) {
	v, err := s.modelled(ctx, name)
	if err != nil {
		return out, err
	}
	out = tuner.Predictions{State: surrogate.Ready, Missing: 1, Position: study.Position(v.Spec.Seed), Results: 2, Trial: tuner.NoTrial}
	for i := range q.Configs {
		p := surrogate.Prediction{Mean: []float64{float64(i)}, StdDev: []float64{1}, Noise: []float64{2}, Feasible: float64(i) / 2}
		if i > 0 {
			p.Metrics = []surrogate.MetricPrediction{{Metric: "latency", Mean: 3, StdDev: 4, Noise: 5}}
		}
		out.Configs = append(out.Configs, p)
	}
	if q.Slices != nil && q.Slices.Through != nil {
		out.Through = *q.Slices.Through
		out.Slices = append(out.Slices, surrogate.Slice{Parameter: "x", At: []float64{0.5}, Values: []space.Value{space.Int(3)}, Predictions: out.Configs})
	} else if q.Slices != nil {
		out.Trial = q.Slices.Points
	}
	return out, nil
}

// Importance implements [tuner.Service]. It is made up.
func (s *Service) Importance(ctx context.Context, name string, q tuner.ImportanceQuery) (out tuner.Importance, err error) {
	if _, err := s.Study(ctx, name); err != nil {
		return out, err
	}
	if q.Objective == "none" {
		return out, &study.InvalidError{Field: "objective", Value: "none", Rule: "there is no such objective"}
	}
	return tuner.Importance{
		Objective: "loss", State: surrogate.Ready, Missing: 1, Position: 2, Results: 3, Completed: 4,
		Parameters: []tuner.ParameterImportance{
			{Parameter: "lr", First: 0.5, Total: 0.75, FirstError: 0.01, TotalError: 0.02, Data: math.NaN()},
			{Parameter: "n", First: math.NaN(), Total: math.NaN(), FirstError: math.NaN(), TotalError: math.NaN(), Data: float64(q.Method)},
		},
	}, nil
}

// Backup implements [tuner.Service].
func (s *Service) Backup(_ context.Context, w io.Writer) error {
	_, err := w.Write(s.BackupData)
	return err
}
