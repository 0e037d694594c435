package wire

import (
	pb "github.com/bkbtuner/bkb/proto/tuner/v1"
	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/study"
)

// These are the fields of a trial that an answer may leave out, as named in Trial.omitted.
const (
	OmittedReports    = "reports"
	OmittedLate       = "late_results"
	OmittedAttributes = "attributes"
	OmittedOutcome    = "outcome" // except its state, reason and cost
)

// EncodeTrial encodes a trial of the named study.
func EncodeTrial(name string, t study.Trial) (*pb.Trial, error) {
	resource, err := TrialName(name, t.Number)
	if err != nil {
		return nil, err
	}
	m, err := encode[*pb.Trial](t)
	if err != nil {
		return nil, err
	}
	m.Name = resource
	if t.Origin == study.OriginSuggested {
		m.Suggestion, err = encode[*pb.Suggestion](t.Suggestion)
	}
	return m, err
}

// DecodeTrial reads a trial.
func DecodeTrial(m *pb.Trial) (study.Trial, error) {
	t, err := decode[study.Trial](m)
	if g := m.GetSuggestion(); err == nil && g != nil {
		t.Suggestion, err = decode[study.Suggestion](g)
		t.Suggestion.Config = t.Config
	}
	return t, err
}

// EncodeTrials encodes trials of the named study.
func EncodeTrials(name string, trials []study.Trial) ([]*pb.Trial, error) {
	return each(trials, func(t study.Trial) (*pb.Trial, error) { return EncodeTrial(name, t) })
}

// DecodeTrials reads trials. Without trials it returns nil.
func DecodeTrials(in []*pb.Trial) ([]study.Trial, error) { return each(in, DecodeTrial) }

// EncodeAsked encodes the answer to an ask.
func EncodeAsked(name string, a tuner.Asked) (*pb.AskResponse, error) {
	m, err := encode[*pb.AskResponse](a)
	if err == nil {
		m.Trials, err = EncodeTrials(name, a.Trials)
	}
	return m, err
}

// DecodeAsked reads the answer to an ask.
func DecodeAsked(m *pb.AskResponse) (tuner.Asked, error) {
	a, err := decode[tuner.Asked](m)
	if err == nil {
		a.Trials, err = DecodeTrials(m.GetTrials())
	}
	return a, err
}

// DecodeTold reads the answer to a tell.
func DecodeTold(m *pb.TellResponse) (tuner.Told, error) {
	trial, err := DecodeTrial(m.GetTrial())
	told := tuner.Told{Trial: trial, Late: m.GetLate()}
	if err == nil && m.GetNext() != nil {
		var next tuner.Asked
		next, err = DecodeAsked(m.GetNext())
		told.Next = &next
	}
	return told, err
}

// EncodeEvent encodes an event of the named study.
func EncodeEvent(name string, h tuner.Event) (*pb.WatchResponse, error) {
	m, err := encode[*pb.WatchResponse](h)
	if err == nil && h.Trial != nil {
		m.Trial, err = EncodeTrial(name, *h.Trial)
	}
	return m, err
}

// DecodeEvent reads an event.
func DecodeEvent(m *pb.WatchResponse) (tuner.Event, error) {
	h, err := decode[tuner.Event](m)
	if err == nil && m.GetTrial() != nil {
		var t study.Trial
		t, err = DecodeTrial(m.GetTrial())
		h.Trial = &t
	}
	return h, err
}
