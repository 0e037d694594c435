package wire

import (
	"math"

	pb "github.com/bkbtuner/bkb/proto/tuner/v1"
	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/study"
	"github.com/bkbtuner/bkb/tuner/surrogate"
)

// EncodeImportanceQuery encodes a query of importances in the named study.
func EncodeImportanceQuery(name string, q tuner.ImportanceQuery) (*pb.GetImportanceRequest, error) {
	parent, err := StudyName(name)
	return &pb.GetImportanceRequest{Parent: parent, Method: pb.ImportanceMethod(q.Method), Objective: q.Objective}, err
}

// DecodeImportanceQuery reads a query of importances, with the study's name.
func DecodeImportanceQuery(m *pb.GetImportanceRequest) (string, tuner.ImportanceQuery, error) {
	var d decoder
	name, err := ParseStudyName(m.GetParent())
	if err != nil {
		return "", tuner.ImportanceQuery{}, err
	}
	return name, tuner.ImportanceQuery{Method: enum(&d, "method", m.GetMethod(), tuner.ImportanceData), Objective: m.GetObjective()}, d.err
}

// EncodeImportance encodes importances.
func EncodeImportance(i tuner.Importance) *pb.Importance {
	m := &pb.Importance{
		Objective: i.Objective, State: pb.ModelState(i.State), MissingResults: int64(i.Missing),
		Position: uint64(i.Position), Results: int64(i.Results), Completed: int64(i.Completed),
	}
	for _, p := range i.Parameters {
		m.Parameters = append(m.Parameters, &pb.ParameterImportance{
			Parameter: p.Parameter, FirstOrder: known(p.First), Total: known(p.Total),
			FirstOrderError: known(p.FirstError), TotalError: known(p.TotalError), Data: known(p.Data),
		})
	}
	return m
}

// known leaves out NaN.
func known(x float64) *float64 {
	if math.IsNaN(x) {
		return nil
	}
	return &x
}

// DecodeImportance reads importances.
func DecodeImportance(m *pb.Importance) (tuner.Importance, error) {
	var d decoder
	i := tuner.Importance{
		Objective: m.GetObjective(), State: enum(&d, "state", m.GetState(), surrogate.Ready),
		Missing: number[int](&d, "missing_results", m.GetMissingResults()), Position: study.Position(m.GetPosition()),
		Results: number[int](&d, "results", m.GetResults()), Completed: number[int](&d, "completed", m.GetCompleted()),
	}
	orNaN := func(x *float64) float64 {
		if x == nil {
			return math.NaN()
		}
		return *x
	}
	for _, p := range m.GetParameters() {
		i.Parameters = append(i.Parameters, tuner.ParameterImportance{
			Parameter: p.GetParameter(), First: orNaN(p.FirstOrder), Total: orNaN(p.Total),
			FirstError: orNaN(p.FirstOrderError), TotalError: orNaN(p.TotalError), Data: orNaN(p.Data),
		})
	}
	return i, d.err
}
