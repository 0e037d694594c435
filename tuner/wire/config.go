package wire

import (
	pb "github.com/bkbtuner/bkb/proto/tuner/v1"
	"github.com/bkbtuner/bkb/tuner/space"
)

// EncodeConfig encodes a configuration.
func EncodeConfig(c space.Config) map[string]*pb.Value {
	out := make(map[string]*pb.Value, c.Len())
	for name, v := range c.All() {
		out[name] = encodeValue(v)
	}
	return orNil(out)
}

// DecodeConfig reads a configuration. A value of an unknown kind becomes the zero
// [space.Value], which no space accepts.
func DecodeConfig(m map[string]*pb.Value) space.Config {
	entries := make([]space.Assignment, 0, len(m))
	for name, v := range m {
		entries = append(entries, space.Assignment{Name: name, Value: decodeValue(v)})
	}
	return space.NewConfig(entries...)
}

func encodeValue(v space.Value) *pb.Value {
	if x, ok := v.AsFloat(); ok {
		return &pb.Value{Kind: &pb.Value_FloatValue{FloatValue: x}}
	}
	if n, ok := v.AsInt(); ok {
		return &pb.Value{Kind: &pb.Value_IntValue{IntValue: n}}
	}
	if s, ok := v.AsString(); ok {
		return &pb.Value{Kind: &pb.Value_StringValue{StringValue: s}}
	}
	if b, ok := v.AsBool(); ok {
		return &pb.Value{Kind: &pb.Value_BoolValue{BoolValue: b}}
	}
	return &pb.Value{}
}

func decodeValue(v *pb.Value) space.Value {
	switch v := v.GetKind().(type) {
	case *pb.Value_FloatValue:
		return space.Float(v.FloatValue)
	case *pb.Value_IntValue:
		return space.Int(v.IntValue)
	case *pb.Value_StringValue:
		return space.String(v.StringValue)
	case *pb.Value_BoolValue:
		return space.Bool(v.BoolValue)
	default:
		return space.Value{}
	}
}
