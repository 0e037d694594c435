package wire

import (
	"maps"
	"slices"

	pb "github.com/bkbtuner/bkb/proto/tuner/v1"
	"github.com/bkbtuner/bkb/tuner/study"
)

// EncodeOutcome encodes an outcome. The zero Outcome is left out. Metrics of one name are a
// [study.InvalidError].
func EncodeOutcome(o study.Outcome) (*pb.Outcome, error) {
	if o.State == 0 && o.Equal(study.Outcome{}) {
		return nil, nil
	}
	metrics := make(map[string]*pb.Metric, len(o.Metrics))
	for _, m := range o.Metrics {
		if _, twice := metrics[m.Name]; twice {
			return nil, invalid("metrics."+m.Name, "twice", "each metric is told once; tell replicates as several values of one metric")
		}
		out := &pb.Metric{Values: m.Values}
		if m.HasStdErr {
			out.StdErr = &m.StdErr
		}
		metrics[m.Name] = out
	}
	return &pb.Outcome{
		State:      pb.TrialState(o.State),
		Reason:     pb.FailReason(o.Reason),
		Message:    o.Message,
		Metrics:    orNil(metrics),
		Cost:       o.Cost,
		Attributes: o.Attributes,
	}, nil
}

// DecodeOutcome reads an outcome.
func DecodeOutcome(m *pb.Outcome) (study.Outcome, error) {
	var d decoder
	o := d.outcome(m)
	return o, d.err
}

func (d *decoder) outcome(m *pb.Outcome) study.Outcome {
	o := study.Outcome{
		State:      enum(d, "outcome.state", m.GetState(), study.Pruned),
		Reason:     enum(d, "outcome.reason", m.GetReason(), study.FailedNaN),
		Message:    m.GetMessage(),
		Cost:       m.GetCost(),
		Attributes: orNil(study.Attributes(m.GetAttributes())),
	}
	for _, name := range slices.Sorted(maps.Keys(m.GetMetrics())) {
		in := m.GetMetrics()[name]
		metric := study.Metric{Name: name, Values: in.GetValues()}
		if in != nil && in.StdErr != nil {
			metric.StdErr, metric.HasStdErr = in.GetStdErr(), true
		}
		o.Metrics = append(o.Metrics, metric)
	}
	return o
}

// DecodeReports reads intermediate values.
func DecodeReports(in []*pb.IntermediateValues) ([]study.Report, error) {
	var d decoder
	reports := d.reports(in)
	return reports, d.err
}

// EncodeReports encodes intermediate values. Two values of one name in one report are a
// [study.InvalidError].
func EncodeReports(reports []study.Report) ([]*pb.IntermediateValues, error) {
	var out []*pb.IntermediateValues
	for _, r := range reports {
		values := make(map[string]float64, len(r.Values))
		for _, v := range r.Values {
			if _, twice := values[v.Name]; twice {
				return nil, invalid("reports."+v.Name, "twice", "each metric is reported once a step")
			}
			values[v.Name] = v.Value
		}
		out = append(out, &pb.IntermediateValues{Step: r.Step, Values: orNil(values), Epoch: int64(r.Epoch)})
	}
	return out, nil
}

func (d *decoder) reports(in []*pb.IntermediateValues) []study.Report {
	var out []study.Report
	for _, m := range in {
		r := study.Report{Step: m.GetStep(), Epoch: number[int](d, "reports.epoch", m.GetEpoch())}
		for _, name := range slices.Sorted(maps.Keys(m.GetValues())) {
			r.Values = append(r.Values, study.NamedValue{Name: name, Value: m.GetValues()[name]})
		}
		out = append(out, r)
	}
	return out
}
