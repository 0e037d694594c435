package wire

import (
	pb "github.com/bkbtuner/bkb/proto/tuner/v1"
	"github.com/bkbtuner/bkb/tuner/study"
	"github.com/bkbtuner/bkb/tuner/surrogate"
)

// EncodeDiagnosis encodes a diagnosis of a model.
func EncodeDiagnosis(d surrogate.Diagnosis) *pb.Diagnosis {
	var metrics []*pb.LimitedMetric
	for _, m := range d.Metrics {
		metrics = append(metrics, &pb.LimitedMetric{Metric: m.Metric, Results: int64(m.Results), Broken: int64(m.Broken), Noise: m.Noise})
	}
	return &pb.Diagnosis{
		Results: int64(d.Results), InducingPoints: int64(d.InducingPoints), Capped: d.Capped,
		EffectiveDimension: d.EffectiveDimension, InformationGain: d.InformationGain, Noise: d.Noise,
		Beta: d.Beta, TheoryBeta: d.TheoryBeta, Gap: d.Gap, Warnings: d.Warnings, Draw: encodeDraw(d.Draw),
		State: pb.ModelState(d.State), MissingResults: int64(d.Missing), Position: uint64(d.Position), EventResults: int64(d.EventResults),
		LengthScales: d.LengthScales, Covered: int64(d.Covered), Predicted: int64(d.Predicted), Calibration: d.Calibration,
		Outliers: int64(d.Outliers), Idle: int64(d.Idle), Stuck: d.Stuck, Metrics: metrics,
		Failures: int64(d.Failures), AvoidsFailures: d.AvoidsFailures,
	}
}

func encodeDraw(d surrogate.Draw) *pb.InducingPointDraw {
	if d.Sampler == "" {
		return nil
	}
	out := &pb.InducingPointDraw{Sampler: d.Sampler, Lambda: d.Lambda, Rows: int64(d.Rows), RowsRead: int64(d.Read)}
	for _, s := range d.Path {
		out.Path = append(out.Path, &pb.InducingPointStep{
			Lambda: s.Lambda, InducingPoints: int64(s.Points), EffectiveDimension: s.Dimension,
		})
	}
	return out
}

// DecodeDiagnosis reads a diagnosis of a model.
func DecodeDiagnosis(m *pb.Diagnosis) (surrogate.Diagnosis, error) {
	var d decoder
	out := surrogate.Diagnosis{
		Results:        number[int](&d, "results", m.GetResults()),
		InducingPoints: number[int](&d, "inducing_points", m.GetInducingPoints()), Capped: m.GetCapped(),
		EffectiveDimension: m.GetEffectiveDimension(), InformationGain: m.GetInformationGain(), Noise: m.GetNoise(),
		Beta: m.GetBeta(), TheoryBeta: m.GetTheoryBeta(), Gap: m.GetGap(), Warnings: m.GetWarnings(),
		State: enum(&d, "state", m.GetState(), surrogate.Ready), Missing: number[int](&d, "missing_results", m.GetMissingResults()),
		Position: study.Position(m.GetPosition()), EventResults: number[int](&d, "event_results", m.GetEventResults()),
		LengthScales: orNil(m.GetLengthScales()), Calibration: m.GetCalibration(),
		Covered: number[int](&d, "covered", m.GetCovered()), Predicted: number[int](&d, "predicted", m.GetPredicted()),
		Outliers: number[int](&d, "outliers", m.GetOutliers()), Idle: number[int](&d, "idle", m.GetIdle()), Stuck: m.GetStuck(),
		Failures: number[int](&d, "failures", m.GetFailures()), AvoidsFailures: m.GetAvoidsFailures(),
	}
	for _, k := range m.GetMetrics() {
		out.Metrics = append(out.Metrics, surrogate.LimitedMetric{
			Metric: k.GetMetric(), Noise: k.GetNoise(),
			Results: number[int](&d, "metrics.results", k.GetResults()), Broken: number[int](&d, "metrics.broken", k.GetBroken()),
		})
	}
	draw := m.GetDraw()
	out.Draw = surrogate.Draw{
		Sampler: draw.GetSampler(), Lambda: draw.GetLambda(),
		Rows: number[int](&d, "draw.rows", draw.GetRows()), Read: number[int](&d, "draw.rows_read", draw.GetRowsRead()),
	}
	for _, s := range draw.GetPath() {
		out.Draw.Path = append(out.Draw.Path, surrogate.Step{
			Lambda: s.GetLambda(), Dimension: s.GetEffectiveDimension(),
			Points: number[int](&d, "draw.path.inducing_points", s.GetInducingPoints()),
		})
	}
	return out, d.err
}
