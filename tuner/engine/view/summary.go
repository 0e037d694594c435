package view

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"time"

	"github.com/bkbtuner/bkb/store"
	"github.com/bkbtuner/bkb/store/verify"
	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/study"
)

// summaryVersion begins the data of a summary. A summary of another version counts as
// missing.
const summaryVersion = 1

// summary is what a list shows of a study and the first event of its log does not tell, except for
// texts.
type summary struct {
	Version, Status, Reason        uint8
	Trials, Added, Counted         uint32
	Counts                         [study.Pruned + 1]uint32
	Cost, MaxCost                  float64
	MaxTrials, Timeout             int64
	HasBest                        bool
	Best                           float64
	BestTrial                      uint32
	ToldSeconds, ToldNanos, Minute int64
	Recent                         [60]uint32
}

// summaryTexts follow a summary in JSON, unless they are empty.
type summaryTexts struct {
	Detail     string           `json:",omitempty"`
	Attributes study.Attributes `json:",omitempty"`
}

// Summarize returns the data of a [store.Summary], from which with the first event of the
// log a list shows the study. It is nil for a study whose attributes do not fit. The same
// log always gives the same data.
func Summarize(s *study.Study, d *Digest) []byte {
	status, how := s.Status()
	spec := s.Spec()
	m := summary{
		Version: summaryVersion, Status: uint8(status), Reason: uint8(how.Reason),
		Trials: uint32(s.Trials()), Added: uint32(s.Added()), Counted: uint32(s.Counted()), Cost: s.Cost(),
		MaxTrials: int64(spec.MaxTrials), Timeout: int64(spec.Timeout), MaxCost: spec.MaxCost,
		HasBest: d.best.Values != nil, BestTrial: uint32(d.best.Trial),
		ToldSeconds: d.told.Unix(), ToldNanos: int64(d.told.Nanosecond()), Minute: d.recent.minute, Recent: d.recent.counts,
	}
	for state := range m.Counts {
		m.Counts[state] = uint32(s.Count(study.TrialState(state)))
	}
	if m.HasBest {
		m.Best = d.best.Values[0]
	}
	data, err := binary.Append(nil, binary.LittleEndian, &m)
	if attributes := s.Attributes(); how.Detail != "" || len(attributes) > 0 {
		text, bad := json.Marshal(summaryTexts{how.Detail, attributes})
		data, err = append(data, text...), errors.Join(err, bad)
	}
	if err != nil || len(data) > store.MaxSummaryBytes {
		return nil
	}
	return data
}

// FromSummary returns the study of a summary. ok is false if another version of this program
// made the summary.
func FromSummary(sum store.Summary) (g Listed, ok bool) {
	created, isCreated := sum.Created.Body.(study.Created)
	var m summary
	var texts summaryTexts
	n, err := binary.Decode(sum.Data, binary.LittleEndian, &m)
	if err == nil && n < len(sum.Data) {
		err = json.Unmarshal(sum.Data[n:], &texts)
	}
	if !isCreated || err != nil || m.Version != summaryVersion {
		return Listed{}, false
	}
	var d Digest
	d.Observe(sum.Created)
	if m.HasBest {
		d.best.Values = []float64{m.Best}
	}
	d.best.Trial, d.told, d.recent = int(m.BestTrial), time.Unix(m.ToldSeconds, m.ToldNanos).UTC(), recent{m.Minute, m.Recent}
	v := tuner.Study{
		ID: sum.Study, Spec: created.Spec, Status: study.Status(m.Status), Finished: study.Finished{Reason: study.FinishReason(m.Reason), Detail: texts.Detail},
		Created: sum.Created.Time, Position: sum.Position, Counts: make(map[study.TrialState]int),
		Trials: int(m.Trials), Added: int(m.Added), Counted: int(m.Counted), Cost: m.Cost, Attributes: texts.Attributes,
	}
	for state, n := range m.Counts {
		if n > 0 {
			v.Counts[study.TrialState(state)] = int(n)
		}
	}
	v.Spec.MaxTrials, v.Spec.Timeout, v.Spec.MaxCost = int(m.MaxTrials), time.Duration(m.Timeout), m.MaxCost
	return Listed{v, d}, true
}

// CheckSummary returns a new [verify.Summarizer], for the check of a store.
func CheckSummary() verify.Summarizer { return new(summaryCheck) }

// summaryCheck follows the log of a study.
type summaryCheck struct{ digest Digest }

// Observe implements [verify.Summarizer].
func (c *summaryCheck) Observe(e study.Event) { c.digest.Observe(e) }

// Compare implements [verify.Summarizer]. Data of another version of this program count as
// missing.
func (c *summaryCheck) Compare(s *study.Study, data []byte) error {
	if len(data) == 0 || data[0] != summaryVersion || bytes.Equal(data, Summarize(s, &c.digest)) {
		return nil
	}
	return errSummary
}

var errSummary = errors.New("its summary differs from its log, so lists show it wrong until its next change")
