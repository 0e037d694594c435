package wire

import (
	pb "github.com/bkbtuner/bkb/proto/tuner/v1"
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
	reports, err := EncodeReports(t.Reports)
	if err != nil {
		return nil, err
	}
	outcome, err := EncodeOutcome(t.Outcome)
	if err != nil {
		return nil, err
	}
	out := &pb.Trial{
		Name:          resource,
		Number:        int64(t.Number),
		State:         pb.TrialState(t.State),
		Config:        EncodeConfig(t.Config),
		Origin:        pb.Origin(t.Origin),
		Suggestion:    encodeSuggestion(t),
		Epoch:         int64(t.Epoch),
		Worker:        t.Worker,
		LeaseDeadline: encodeTime(t.Deadline),
		Reports:       reports,
		Outcome:       outcome,
		Attributes:    t.Attributes,
		CreateTime:    encodeTime(t.Created),
		StartTime:     encodeTime(t.Started),
		EndTime:       encodeTime(t.Ended),
		Expiries:      int32Of(t.Expiries),
		ToldEpoch:     int64(t.ToldEpoch),
		LastSeenTime:  encodeTime(t.Seen),
	}
	for _, l := range t.Late {
		outcome, err := EncodeOutcome(l.Outcome)
		if err != nil {
			return nil, err
		}
		out.LateResults = append(out.LateResults, &pb.LateResult{Epoch: int64(l.Epoch), Time: encodeTime(l.Time), Outcome: outcome})
	}
	return out, nil
}

// encodeSuggestion leaves out the configuration, which the trial has.
func encodeSuggestion(t study.Trial) *pb.Suggestion {
	if t.Origin != study.OriginSuggested {
		return nil
	}
	g := t.Suggestion
	return &pb.Suggestion{Phase: g.Phase, Seed: g.Seed, Seen: uint64(g.Seen), Mean: g.Mean, StdDev: g.StdDev, Bound: g.Bound, Beta: g.Beta}
}

// DecodeTrial reads a trial.
func DecodeTrial(m *pb.Trial) (study.Trial, error) {
	var d decoder
	t := d.trial(m)
	return t, d.err
}

func (d *decoder) trial(m *pb.Trial) study.Trial {
	t := study.Trial{
		Number:     number[int](d, "trial.number", m.GetNumber()),
		State:      enum(d, "trial.state", m.GetState(), study.Pruned),
		Config:     DecodeConfig(m.GetConfig()),
		Origin:     enum(d, "trial.origin", m.GetOrigin(), study.OriginAdded),
		Epoch:      number[int](d, "trial.epoch", m.GetEpoch()),
		Expiries:   int(m.GetExpiries()),
		Worker:     m.GetWorker(),
		Deadline:   d.time("trial.lease_deadline", m.GetLeaseDeadline()),
		Reports:    d.reports(m.GetReports()),
		Outcome:    d.outcome(m.GetOutcome()),
		ToldEpoch:  number[int](d, "trial.told_epoch", m.GetToldEpoch()),
		Attributes: orNil(study.Attributes(m.GetAttributes())),
		Created:    d.time("trial.create_time", m.GetCreateTime()),
		Started:    d.time("trial.start_time", m.GetStartTime()),
		Ended:      d.time("trial.end_time", m.GetEndTime()),
		Seen:       d.time("trial.last_seen_time", m.GetLastSeenTime()),
	}
	if g := m.GetSuggestion(); g != nil {
		t.Suggestion = study.Suggestion{
			Config: t.Config, Seed: g.GetSeed(), Seen: study.Position(g.GetSeen()),
			Phase: g.GetPhase(), Mean: g.GetMean(), StdDev: g.GetStdDev(), Bound: g.GetBound(), Beta: g.GetBeta(),
		}
	}
	for _, l := range m.GetLateResults() {
		t.Late = append(t.Late, study.LateResult{
			Epoch: number[int](d, "late_results.epoch", l.GetEpoch()),
			Time:  d.time("late_results.time", l.GetTime()), Outcome: d.outcome(l.GetOutcome()),
		})
	}
	return t
}

// EncodeTrials encodes trials of the named study.
func EncodeTrials(name string, trials []study.Trial) ([]*pb.Trial, error) {
	out := make([]*pb.Trial, 0, len(trials))
	for _, t := range trials {
		m, err := EncodeTrial(name, t)
		if err != nil {
			return nil, err
		}
		out = append(out, m)
	}
	return out, nil
}

// DecodeTrials reads trials. Without trials it returns nil.
func DecodeTrials(in []*pb.Trial) ([]study.Trial, error) {
	var d decoder
	var out []study.Trial
	for _, m := range in {
		out = append(out, d.trial(m))
	}
	return out, d.err
}
