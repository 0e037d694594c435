package wire

import (
	"maps"
	"slices"

	pb "github.com/bkbtuner/bkb/proto/tuner/v1"
	"github.com/bkbtuner/bkb/tuner/space"
	"github.com/bkbtuner/bkb/tuner/study"
)

// DecodeConfig reads a configuration. A value of an unknown kind becomes the zero
// [space.Value], which no space accepts.
func DecodeConfig(m map[string]*pb.Value) space.Config {
	entries := make([]space.Assignment, 0, len(m))
	for name, v := range m {
		value, _ := decodeValue(nil, v)
		entries = append(entries, space.Assignment{Name: name, Value: value})
	}
	return space.NewConfig(entries...)
}

func encodeConfig(c space.Config) (map[string]*pb.Value, error) {
	if c.Len() == 0 {
		return nil, nil
	}
	out := make(map[string]*pb.Value, c.Len())
	for name, v := range c.All() {
		out[name], _ = encodeValue(v)
	}
	return out, nil
}

func decodeConfig(_ any, m map[string]*pb.Value) (space.Config, error) { return DecodeConfig(m), nil }

func encodeConfiguration(c space.Config) (*pb.Configuration, error) {
	values, err := encodeConfig(c)
	return &pb.Configuration{Values: values}, err
}

func decodeConfiguration(_ any, m *pb.Configuration) (space.Config, error) {
	return DecodeConfig(m.GetValues()), nil
}

func encodeValue(v space.Value) (*pb.Value, error) {
	if x, ok := v.AsFloat(); ok {
		return &pb.Value{Kind: &pb.Value_FloatValue{FloatValue: x}}, nil
	}
	if n, ok := v.AsInt(); ok {
		return &pb.Value{Kind: &pb.Value_IntValue{IntValue: n}}, nil
	}
	if s, ok := v.AsString(); ok {
		return &pb.Value{Kind: &pb.Value_StringValue{StringValue: s}}, nil
	}
	if b, ok := v.AsBool(); ok {
		return &pb.Value{Kind: &pb.Value_BoolValue{BoolValue: b}}, nil
	}
	return &pb.Value{}, nil
}

func decodeValue(_ any, v *pb.Value) (space.Value, error) {
	switch v := v.GetKind().(type) {
	case *pb.Value_FloatValue:
		return space.Float(v.FloatValue), nil
	case *pb.Value_IntValue:
		return space.Int(v.IntValue), nil
	case *pb.Value_StringValue:
		return space.String(v.StringValue), nil
	case *pb.Value_BoolValue:
		return space.Bool(v.BoolValue), nil
	default:
		return space.Value{}, nil
	}
}

func encodeMetrics(list []study.Metric) (map[string]*pb.Metric, error) {
	if len(list) == 0 {
		return nil, nil
	}
	out := make(map[string]*pb.Metric, len(list))
	for _, m := range list {
		if out[m.Name] != nil {
			return nil, invalid("metrics."+m.Name, "twice", "each metric is told once; tell replicates as several values of one metric")
		}
		one := &pb.Metric{Values: m.Values}
		if m.HasStdErr {
			one.StdErr = &m.StdErr
		}
		out[m.Name] = one
	}
	return out, nil
}

func decodeMetrics(_ any, in map[string]*pb.Metric) (out []study.Metric, err error) {
	for _, name := range slices.Sorted(maps.Keys(in)) {
		m := in[name]
		out = append(out, study.Metric{Name: name, Values: m.GetValues(), StdErr: m.GetStdErr(), HasStdErr: m != nil && m.StdErr != nil})
	}
	return out, nil
}

func encodeValues(list []study.NamedValue) (map[string]float64, error) {
	if len(list) == 0 {
		return nil, nil
	}
	out := make(map[string]float64, len(list))
	for _, v := range list {
		if _, twice := out[v.Name]; twice {
			return nil, invalid("reports."+v.Name, "twice", "each metric is reported once a step")
		}
		out[v.Name] = v.Value
	}
	return out, nil
}

func decodeValues(_ any, in map[string]float64) (out []study.NamedValue, err error) {
	for _, name := range slices.Sorted(maps.Keys(in)) {
		out = append(out, study.NamedValue{Name: name, Value: in[name]})
	}
	return out, nil
}

// each converts the elements of a list. An empty one becomes nil.
func each[A, B any](in []A, convert func(A) (B, error)) (out []B, err error) {
	for _, a := range in {
		b, err := convert(a)
		if err != nil {
			return nil, err
		}
		out = append(out, b)
	}
	return out, nil
}

// EncodeReports encodes intermediate values. Two values of one name in one report are a
// [study.InvalidError].
func EncodeReports(reports []study.Report) ([]*pb.IntermediateValues, error) {
	return each(reports, encode[*pb.IntermediateValues])
}

// DecodeReports reads intermediate values.
func DecodeReports(in []*pb.IntermediateValues) ([]study.Report, error) {
	return each(in, decode[study.Report, *pb.IntermediateValues])
}

// EncodeOutcome encodes an outcome. The zero Outcome is left out. Metrics of one name are a
// [study.InvalidError].
func EncodeOutcome(o study.Outcome) (*pb.Outcome, error) {
	if o.Equal(study.Outcome{}) {
		return nil, nil
	}
	return encode[*pb.Outcome](o)
}

// DecodeOutcome reads an outcome.
func DecodeOutcome(m *pb.Outcome) (study.Outcome, error) { return decode[study.Outcome](m) }
