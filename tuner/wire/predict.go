package wire

import (
	pb "github.com/bkbtuner/bkb/proto/tuner/v1"
	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/space"
	"github.com/bkbtuner/bkb/tuner/study"
	"github.com/bkbtuner/bkb/tuner/surrogate"
)

func encodeConfiguration(c space.Config) *pb.Configuration {
	return &pb.Configuration{Values: EncodeConfig(c)}
}

// EncodePredictQuery encodes a query of predictions of the named study's model.
func EncodePredictQuery(name string, q tuner.PredictQuery) (*pb.PredictRequest, error) {
	parent, err := StudyName(name)
	if err != nil {
		return nil, err
	}
	m := &pb.PredictRequest{Parent: parent}
	for _, c := range q.Configs {
		m.Configs = append(m.Configs, encodeConfiguration(c))
	}
	if s := q.Slices; s != nil {
		m.Slices = &pb.SliceRequest{Parameters: s.Parameters, Points: int32Of(s.Points)}
		if s.Through != nil {
			m.Slices.Through = encodeConfiguration(*s.Through)
		}
	}
	return m, nil
}

// DecodePredictQuery reads a query of predictions, with the study's name.
func DecodePredictQuery(m *pb.PredictRequest) (string, tuner.PredictQuery, error) {
	name, err := ParseStudyName(m.GetParent())
	var q tuner.PredictQuery
	for _, c := range m.GetConfigs() {
		q.Configs = append(q.Configs, DecodeConfig(c.GetValues()))
	}
	if s := m.GetSlices(); s != nil {
		q.Slices = &tuner.SliceQuery{Parameters: s.GetParameters(), Points: int(s.GetPoints())}
		if s.GetThrough() != nil {
			c := DecodeConfig(s.GetThrough().GetValues())
			q.Slices.Through = &c
		}
	}
	return name, q, err
}

// EncodePredictions encodes predictions.
func EncodePredictions(p tuner.Predictions) *pb.PredictResponse {
	m := &pb.PredictResponse{
		State: pb.ModelState(p.State), MissingResults: int64(p.Missing), Position: uint64(p.Position), Results: int64(p.Results),
		Configs: encodePredictions(p.Configs),
	}
	if p.Through.Len() > 0 {
		m.Through = encodeConfiguration(p.Through)
	}
	if p.Trial != tuner.NoTrial {
		trial := int64(p.Trial)
		m.Trial = &trial
	}
	for _, s := range p.Slices {
		out := &pb.Slice{Parameter: s.Parameter, At: s.At, Predictions: encodePredictions(s.Predictions)}
		for _, v := range s.Values {
			out.Values = append(out.Values, encodeValue(v))
		}
		m.Slices = append(m.Slices, out)
	}
	return m
}

func encodePredictions(list []surrogate.Prediction) (out []*pb.Prediction) {
	for _, p := range list {
		m := &pb.Prediction{Mean: p.Mean, StdDev: p.StdDev, Noise: p.Noise, Feasible: p.Feasible}
		for _, k := range p.Metrics {
			m.Metrics = append(m.Metrics, &pb.MetricPrediction{Metric: k.Metric, Mean: k.Mean, StdDev: k.StdDev, Noise: k.Noise})
		}
		out = append(out, m)
	}
	return out
}

// DecodePredictions reads predictions.
func DecodePredictions(m *pb.PredictResponse) (tuner.Predictions, error) {
	var d decoder
	p := tuner.Predictions{
		State: enum(&d, "state", m.GetState(), surrogate.Ready), Missing: number[int](&d, "missing_results", m.GetMissingResults()),
		Position: study.Position(m.GetPosition()), Results: number[int](&d, "results", m.GetResults()),
		Configs: decodePredictions(m.GetConfigs()), Trial: tuner.NoTrial,
	}
	if m.GetThrough() != nil {
		p.Through = DecodeConfig(m.GetThrough().GetValues())
	}
	if m.Trial != nil {
		p.Trial = number[int](&d, "trial", m.GetTrial())
	}
	for _, s := range m.GetSlices() {
		out := surrogate.Slice{Parameter: s.GetParameter(), At: s.GetAt(), Predictions: decodePredictions(s.GetPredictions())}
		for _, v := range s.GetValues() {
			out.Values = append(out.Values, decodeValue(v))
		}
		p.Slices = append(p.Slices, out)
	}
	return p, d.err
}

func decodePredictions(list []*pb.Prediction) (out []surrogate.Prediction) {
	for _, p := range list {
		one := surrogate.Prediction{Mean: p.GetMean(), StdDev: p.GetStdDev(), Noise: p.GetNoise(), Feasible: p.GetFeasible()}
		for _, k := range p.GetMetrics() {
			one.Metrics = append(one.Metrics, surrogate.MetricPrediction{Metric: k.GetMetric(), Mean: k.GetMean(), StdDev: k.GetStdDev(), Noise: k.GetNoise()})
		}
		out = append(out, one)
	}
	return out
}
