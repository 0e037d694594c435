package server

import (
	"fmt"
	"iter"
	"slices"

	"google.golang.org/protobuf/proto"

	pb "github.com/bkbtuner/bkb/proto/tuner/v1"
	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/space"
	"github.com/bkbtuner/bkb/tuner/study"
	"github.com/bkbtuner/bkb/tuner/wire"
)

// maxAnswerBytes is about the largest size of an answer. A gRPC client accepts 4 MiB by
// default, and the difference is for the rest of the message.
const maxAnswerBytes = 3 << 20

// room returns how many bytes the parts of an answer may take.
func (h *handlers) room() int { return min(maxAnswerBytes, h.server.options.Limits.MaxSendBytes/2) }

// pageOf returns a function that reports whether one more message fits on a page. The
// first message always fits.
func (h *handlers) pageOf() func(proto.Message) bool {
	room, first := h.room(), true
	return func(m proto.Message) bool {
		room -= proto.Size(m)
		fits := first || room >= 0
		first = false
		return fits
	}
}

// part encodes a trial within room. Trial.omitted names the parts left out, and reports
// are left out first.
func part(name string, t study.Trial, room int) (*pb.Trial, error) {
	m, err := sent(wire.EncodeTrial(name, t.WithoutReports()))
	if err != nil {
		return nil, err
	}
	trim(m, room)
	return m, addReports(m, t.Reports, room)
}

// addReports adds reports to a trial, or says that they do not fit into room.
func addReports(m *pb.Trial, reports []study.Report, room int) (err error) {
	if len(reports) == 0 {
		return nil
	}
	if room -= proto.Size(m); !exceed(reports, room) {
		m.Reports, err = fitting(slices.All(reports), room)
	}
	if len(m.Reports) < len(reports) {
		m.Reports, m.Omitted = nil, append(m.Omitted, wire.OmittedReports)
	}
	return err
}

// trim removes the parts of a trial that a worker can make large until it fits into
// room. It removes late results, then attributes, then the outcome.
func trim(m *pb.Trial, room int) {
	if len(m.LateResults) > 0 && proto.Size(m) > room {
		m.LateResults, m.Omitted = nil, append(m.Omitted, wire.OmittedLate)
	}
	if len(m.Attributes) > 0 && proto.Size(m) > room {
		m.Attributes, m.Omitted = nil, append(m.Omitted, wire.OmittedAttributes)
	}
	if o := m.Outcome; o != nil && proto.Size(m) > room {
		m.Outcome = &pb.Outcome{State: o.State, Reason: o.Reason, Cost: o.Cost}
		m.Omitted = append(m.Omitted, wire.OmittedOutcome)
	}
}

// parts encodes the trials for the answer to a mutation, without reports. If they take
// more than room, trials larger than their share are trimmed to it.
func parts(name string, trials []study.Trial, room int) ([]*pb.Trial, error) {
	out := make([]*pb.Trial, 0, len(trials))
	size := 0
	for _, t := range trials {
		m, err := sent(wire.EncodeTrial(name, t.WithoutReports()))
		if err != nil {
			return nil, err
		}
		out = append(out, m)
		size += proto.Size(m)
	}
	if size > room {
		for _, m := range out {
			trim(m, room/len(out))
		}
	}
	return out, nil
}

// reportOverhead is an upper bound on the bytes that a report adds to its own in a message.
const reportOverhead = 8

// exceed reports whether reports certainly do not fit into room. It costs less than
// encoding them.
func exceed(reports []study.Report, room int) bool {
	const value = 2 + 2 + 9 // an entry, a name and a number, without the name's text
	for _, r := range reports {
		for _, v := range r.Values {
			if room -= len(v.Name) + value; room < 0 {
				return true
			}
		}
	}
	return false
}

// fitting encodes as many reports as fit into room. It encodes at most one more than that.
func fitting(reports iter.Seq2[int, study.Report], room int) (out []*pb.IntermediateValues, err error) {
	for _, r := range reports {
		m, err := sent(wire.EncodeReports([]study.Report{r}))
		if err != nil {
			return nil, err
		}
		if room -= proto.Size(m[0]) + reportOverhead; room < 0 {
			break
		}
		out = append(out, m[0])
	}
	return out, nil
}

// happened encodes an event. It includes the last of the added reports that fit.
func happened(name string, h tuner.Event, room int) (*pb.WatchResponse, error) {
	var reports []study.Report
	if h.Trial != nil {
		t := h.Trial.WithoutReports()
		reports, h.Trial = h.Trial.Reports, &t
	}
	m, err := sent(wire.EncodeEvent(name, h))
	if err != nil || m.Trial == nil {
		return m, err
	}
	trim(m.Trial, room)
	m.Trial.Reports, err = fitting(slices.Backward(reports), room-proto.Size(m))
	slices.Reverse(m.Trial.Reports)
	if len(m.Trial.Reports) < len(reports) {
		m.Trial.Omitted = append(m.Trial.Omitted, wire.OmittedReports)
	}
	return m, err
}

// checkCount refuses an ask whose answer would not fit, before any trial is handed out.
func checkCount(spec study.Spec, count, room int) error {
	most := max(room/trialBytes(spec), 1)
	if count == tuner.AutoCount {
		count = tuner.MaxAuto
	}
	if count <= most || count > study.MaxCount { // the study itself refuses counts above MaxCount
		return nil
	}
	return &study.InvalidError{
		Field: "count", Value: fmt.Sprint(count),
		Rule:   fmt.Sprintf("must be at most %d in this study, so that an answer with the largest configurations of its space fits", most),
		Remedy: "ask several times for fewer trials",
	}
}

// trialBytes returns about the most bytes that a new trial takes in an answer, without
// the parts that trim removes.
func trialBytes(spec study.Spec) int {
	const rest = 600 // names, numbers and times
	size := rest + 40*len(spec.Objectives)
	for _, p := range spec.Space.Parameters() {
		size += len(p.Name) + longest(p) + 16
	}
	return size
}

// longest returns the most bytes that a value of a parameter takes.
func longest(p space.Parameter) int {
	size := 10
	for _, v := range p.Values {
		if text, ok := v.AsString(); ok {
			size = max(size, len(text)+4)
		}
	}
	return size
}
