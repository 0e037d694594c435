package optuna

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/protobuf/proto"

	pb "github.com/bkbtuner/bkb/proto/optuna"
	"github.com/bkbtuner/bkb/tuner/runner/metric"
)

// exported is a study in the JSON that tuner import reads. The import_id of the study has
// its id and name. Other storages may have the same, so that finished trials have one of
// their own with their times.
type exported struct {
	ImportID    string          `json:"import_id"`
	Name        string          `json:"study_name"`
	Directions  []string        `json:"directions"`
	MetricNames json.RawMessage `json:"metric_names,omitempty"`
	Trials      []exportedTrial `json:"trials"`
}

type exportedTrial struct {
	ImportID      string                     `json:"import_id,omitempty"`
	Number        int64                      `json:"number"`
	State         string                     `json:"state"`
	Params        map[string]json.RawMessage `json:"params"`
	Values        []json.RawMessage          `json:"values"`
	UserAttrs     map[string]json.RawMessage `json:"user_attrs"`
	Intermediate  map[int64]json.RawMessage  `json:"intermediate_values"`
	Distributions map[string]json.RawMessage `json:"distributions"`
}

// metricNames is the attribute of a study with the names of its objectives.
const metricNames = "study:metric_names"

// Storage is what Export reads. A [Face] is one, and a [Remote].
type Storage interface {
	GetAllStudies(context.Context, *pb.GetAllStudiesRequest) (*pb.GetAllStudiesReply, error)
	GetTrials(context.Context, *pb.GetTrialsRequest) (*pb.GetTrialsReply, error)
}

// Remote is a storage on a server.
type Remote struct{ Client pb.StorageServiceClient }

// GetAllStudies implements [Storage].
func (r Remote) GetAllStudies(ctx context.Context, q *pb.GetAllStudiesRequest) (*pb.GetAllStudiesReply, error) {
	return r.Client.GetAllStudies(ctx, q)
}

// GetTrials implements [Storage].
func (r Remote) GetTrials(ctx context.Context, q *pb.GetTrialsRequest) (*pb.GetTrialsReply, error) {
	return r.Client.GetTrials(ctx, q)
}

// Export reads a study from a storage of Optuna, in the JSON that tuner import reads. The
// empty name means the only study there. The numbers NaN and ±Inf are text.
func Export(ctx context.Context, c Storage, name string) ([]byte, error) {
	all, err := c.GetAllStudies(ctx, &pb.GetAllStudiesRequest{})
	if err != nil {
		return nil, err
	}
	s, err := choose(all.Studies, name)
	if err != nil {
		return nil, err
	}
	return exportStudy(ctx, c, s)
}

// ExportStudy is Export for the study with a name in the store.
func (f *Face) ExportStudy(ctx context.Context, inStore string) ([]byte, error) {
	found, err := f.tuner.FindForeign(ctx, inStore, 0)
	if err != nil {
		return nil, err
	}
	s, err := f.frozen(ctx, int64(found.ID))
	if err != nil {
		return nil, err
	}
	return exportStudy(ctx, f, s)
}

func exportStudy(ctx context.Context, c Storage, s *pb.Study) ([]byte, error) {
	trials, err := c.GetTrials(ctx, &pb.GetTrialsRequest{StudyId: s.StudyId, TrialIdGreaterThan: -1})
	if err != nil {
		return nil, err
	}
	if encoded := trials.ProtoReflect().GetUnknown(); len(encoded) > 0 { // a face does not decode them
		if err := proto.Unmarshal(encoded, trials); err != nil {
			return nil, err
		}
	}
	out := exported{Name: s.StudyName, Trials: []exportedTrial{}}
	for _, d := range s.Directions {
		out.Directions = append(out.Directions, strings.ToLower(d.String()))
	}
	if names, ok := s.SystemAttributes[metricNames]; ok {
		out.MetricNames = quoted(names)
	}
	slices.SortFunc(trials.Trials, func(a, b *pb.Trial) int { return int(a.Number - b.Number) })
	for _, t := range trials.Trials {
		e, err := export(t)
		if err != nil {
			return nil, fmt.Errorf("trial %d: %w", t.Number, err)
		}
		out.Trials = append(out.Trials, e)
	}
	out.ImportID = fmt.Sprintf("optuna storage %d %q", s.StudyId, s.StudyName)
	return json.Marshal(out)
}

// choose returns the study with a name or, without one, the only study.
func choose(studies []*pb.Study, name string) (*pb.Study, error) {
	var names []string
	for _, s := range studies {
		if s.StudyName == name && name != "" || name == "" && len(studies) == 1 {
			return s, nil
		}
		names = append(names, fmt.Sprintf("%q", s.StudyName))
	}
	const most = 10
	if more := len(names) - most; more > 0 {
		names = append(names[:most], fmt.Sprintf("and %d more", more))
	}
	switch {
	case len(studies) == 0:
		return nil, &NoStudyError{"the storage has no studies"}
	case name == "":
		return nil, &NoStudyError{"the storage has several studies, so name one of " + strings.Join(names, ", ")}
	default:
		return nil, &NoStudyError{fmt.Sprintf("the storage has no study %q, but %s", name, strings.Join(names, ", "))}
	}
}

// NoStudyError says that a storage does not have the study that was asked for.
type NoStudyError struct{ text string }

func (e *NoStudyError) Error() string { return e.text }

// quoted is JSON of Python with its words for numbers as text.
func quoted(text string) json.RawMessage { return metric.QuoteWords([]byte(text)) }

// number is a number as JSON has it.
func number(x float64) json.RawMessage {
	switch {
	case math.IsNaN(x):
		return json.RawMessage(`"NaN"`)
	case math.IsInf(x, 1):
		return json.RawMessage(`"Infinity"`)
	case math.IsInf(x, -1):
		return json.RawMessage(`"-Infinity"`)
	}
	return strconv.AppendFloat(nil, x, 'g', -1, 64)
}

func export(t *pb.Trial) (exportedTrial, error) {
	out := exportedTrial{
		Number: t.Number, State: t.State.String(), Params: make(map[string]json.RawMessage), UserAttrs: make(map[string]json.RawMessage),
		Intermediate: make(map[int64]json.RawMessage), Distributions: make(map[string]json.RawMessage),
	}
	if over(t.State) { // the times of an open trial change
		out.ImportID = t.DatetimeStart + " " + t.DatetimeComplete
	}
	for name, x := range t.Params {
		value, err := external(t.Distributions[name], x)
		if err != nil {
			return out, fmt.Errorf("parameter %q: %w", name, err)
		}
		out.Params[name], out.Distributions[name] = value, quoted(t.Distributions[name])
	}
	for _, v := range t.Values {
		out.Values = append(out.Values, number(v))
	}
	for key, value := range t.UserAttributes {
		out.UserAttrs[key] = quoted(value)
	}
	for step, v := range t.IntermediateValues {
		out.Intermediate[step] = number(v)
	}
	return out, nil
}

// external is the value of a parameter as a script sees it.
func external(distribution string, x float64) (json.RawMessage, error) {
	d, err := ParseDistribution(distribution)
	if err != nil {
		return nil, err
	}
	if err := d.check("value", x); err != nil {
		return nil, err
	}
	switch {
	case d.Kind == categorical:
		return json.Marshal(d.Choices[int(x)])
	case d.integral():
		return strconv.AppendInt(nil, int64(x), 10), nil
	default:
		return number(x), nil
	}
}
