package wire

import (
	"errors"
	"fmt"
	"strconv"

	pb "github.com/bkbtuner/bkb/proto/tuner/v1"
	"github.com/bkbtuner/bkb/store"
	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/space"
	"github.com/bkbtuner/bkb/tuner/study"
)

// EncodeCreate encodes the request to create a study.
func EncodeCreate(name string, c study.Create) (*pb.CreateStudyRequest, error) {
	spec, err := EncodeSpec(c.Spec)
	if err != nil {
		return nil, err
	}
	return &pb.CreateStudyRequest{RequestId: c.RequestID, StudyId: name, Spec: spec}, nil
}

// DecodeCreate reads the request to create a study, with warnings about its space.
func DecodeCreate(m *pb.CreateStudyRequest) (name string, c study.Create, warnings []space.Warning, err error) {
	spec, warnings, err := DecodeSpec(m.GetSpec())
	return m.GetStudyId(), study.Create{RequestID: m.GetRequestId(), Spec: spec}, warnings, err
}

// EncodeDelete encodes the request to delete a study. If the id is not 0, only the study
// with this id is deleted.
func EncodeDelete(name string, id store.StudyID, requestID string) (*pb.DeleteStudyRequest, error) {
	resource, err := StudyName(name)
	return &pb.DeleteStudyRequest{RequestId: requestID, Name: resource, Uid: uint64(id)}, err
}

// EncodePause encodes the request to pause a study.
func EncodePause(name string, c study.Pause) (*pb.PauseStudyRequest, error) {
	resource, err := StudyName(name)
	return &pb.PauseStudyRequest{RequestId: c.RequestID, Name: resource}, err
}

// DecodePause reads the request to pause a study.
func DecodePause(m *pb.PauseStudyRequest) (name string, c study.Pause, err error) {
	name, err = ParseStudyName(m.GetName())
	return name, study.Pause{RequestID: m.GetRequestId()}, err
}

// EncodeResume encodes the request to resume a study.
func EncodeResume(name string, c study.Resume) (*pb.ResumeStudyRequest, error) {
	resource, err := StudyName(name)
	return &pb.ResumeStudyRequest{RequestId: c.RequestID, Name: resource}, err
}

// DecodeResume reads the request to resume a study.
func DecodeResume(m *pb.ResumeStudyRequest) (name string, c study.Resume, err error) {
	name, err = ParseStudyName(m.GetName())
	return name, study.Resume{RequestID: m.GetRequestId()}, err
}

// EncodeFinish encodes the request to finish a study. Its Reason is not sent.
func EncodeFinish(name string, c study.Finish) (*pb.FinishStudyRequest, error) {
	resource, err := StudyName(name)
	return &pb.FinishStudyRequest{RequestId: c.RequestID, Name: resource, Detail: c.Detail}, err
}

// DecodeFinish reads the request to finish a study, for the reason [study.FinishedUser].
func DecodeFinish(m *pb.FinishStudyRequest) (name string, c study.Finish, err error) {
	name, err = ParseStudyName(m.GetName())
	return name, study.Finish{RequestID: m.GetRequestId(), Reason: study.FinishedUser, Detail: m.GetDetail()}, err
}

// EncodeExtend encodes the request to extend a study.
func EncodeExtend(name string, c study.Extend) (*pb.ExtendStudyRequest, error) {
	resource, err := StudyName(name)
	return &pb.ExtendStudyRequest{
		RequestId: c.RequestID, Name: resource, MaxTrials: int64(c.MaxTrials), Timeout: encodeDuration(c.Timeout), MaxCost: c.MaxCost, More: c.More,
	}, err
}

// DecodeExtend reads the request to extend a study.
func DecodeExtend(m *pb.ExtendStudyRequest) (name string, c study.Extend, err error) {
	var d decoder
	c = study.Extend{
		RequestID: m.GetRequestId(), MaxTrials: number[int](&d, "max_trials", m.GetMaxTrials()),
		Timeout: d.duration("timeout", m.GetTimeout()), MaxCost: m.GetMaxCost(), More: m.GetMore(),
	}
	if name, err = ParseStudyName(m.GetName()); err == nil {
		err = d.err
	}
	return name, c, err
}

// EncodeSetAttributes encodes the request to set attributes of a study or trial.
func EncodeSetAttributes(name string, c study.SetAttributes) (*pb.SetAttributesRequest, error) {
	resource, err := StudyName(name)
	if c.Trial != study.OfStudy {
		resource, err = TrialName(name, c.Trial)
	}
	return &pb.SetAttributesRequest{RequestId: c.RequestID, Name: resource, Attributes: c.Attributes}, err
}

// DecodeSetAttributes reads the request to set attributes of a study or trial.
func DecodeSetAttributes(m *pb.SetAttributesRequest) (name string, c study.SetAttributes, err error) {
	name, number, err := parseName(m.GetName())
	return name, study.SetAttributes{RequestID: m.GetRequestId(), Trial: number, Attributes: orNil(study.Attributes(m.GetAttributes()))}, err
}

// EncodeAsk encodes the request for trials.
func EncodeAsk(name string, c study.Ask) (*pb.AskRequest, error) {
	parent, err := StudyName(name)
	m := &pb.AskRequest{RequestId: c.RequestID, Parent: parent, Count: int32Of(c.Count), Worker: c.Worker, Lease: encodeDuration(c.Lease), New: c.New}
	if c.Count == tuner.AutoCount {
		m.Count, m.AutoCount = 0, true
	}
	return m, err
}

// DecodeAsk reads the request for trials.
func DecodeAsk(m *pb.AskRequest) (name string, c study.Ask, err error) {
	var d decoder
	name, err = ParseStudyName(m.GetParent())
	if err != nil {
		return "", study.Ask{}, err
	}
	c = study.Ask{RequestID: m.GetRequestId(), Count: int(m.GetCount()), Worker: m.GetWorker(), Lease: d.duration("lease", m.GetLease()), New: m.GetNew()}
	switch {
	case m.GetAutoCount() && c.Count != 0:
		d.fail(invalid("count", c.Count, "must be left out with auto_count"))
	case m.GetAutoCount():
		c.Count = tuner.AutoCount
	case c.Count == tuner.AutoCount:
		d.fail(invalid("count", c.Count, "must not be negative"))
	}
	return name, c, d.err
}

// EncodeTell encodes the request to give a trial its outcome.
func EncodeTell(name string, c study.Tell) (*pb.TellRequest, error) {
	resource, err := TrialName(name, c.Trial)
	if err != nil {
		return nil, err
	}
	outcome, err := EncodeOutcome(c.Outcome)
	return &pb.TellRequest{RequestId: c.RequestID, Name: resource, Epoch: int64(c.Epoch), Outcome: outcome}, err
}

// DecodeTell reads the request to give a trial its outcome.
func DecodeTell(m *pb.TellRequest) (name string, c study.Tell, err error) {
	var d decoder
	name, trial, err := ParseTrialName(m.GetName())
	if err != nil {
		return "", study.Tell{}, err
	}
	c = study.Tell{RequestID: m.GetRequestId(), Trial: trial, Epoch: number[int](&d, "epoch", m.GetEpoch()), Outcome: d.outcome(m.GetOutcome())}
	return name, c, d.err
}

// encodeNewReports encodes reports without their Epoch, which a service ignores in requests.
func encodeNewReports(reports []study.Report) ([]*pb.IntermediateValues, error) {
	out, err := EncodeReports(reports)
	for _, r := range out {
		r.Epoch = 0
	}
	return out, err
}

// EncodeReport encodes the request to add intermediate values.
func EncodeReport(name string, c study.ReportValues) (*pb.ReportRequest, error) {
	resource, err := TrialName(name, c.Trial)
	if err != nil {
		return nil, err
	}
	reports, err := encodeNewReports(c.Reports)
	return &pb.ReportRequest{RequestId: c.RequestID, Name: resource, Epoch: int64(c.Epoch), Reports: reports}, err
}

// DecodeReport reads the request to add intermediate values.
func DecodeReport(m *pb.ReportRequest) (name string, c study.ReportValues, err error) {
	var d decoder
	name, trial, err := ParseTrialName(m.GetName())
	if err != nil {
		return "", study.ReportValues{}, err
	}
	c = study.ReportValues{RequestID: m.GetRequestId(), Trial: trial, Epoch: number[int](&d, "epoch", m.GetEpoch()), Reports: d.reports(m.GetReports())}
	return name, c, d.err
}

// EncodeHeartbeat encodes the request to renew a lease.
func EncodeHeartbeat(name string, c study.Heartbeat) (*pb.HeartbeatRequest, error) {
	resource, err := TrialName(name, c.Trial)
	return &pb.HeartbeatRequest{Name: resource, Epoch: int64(c.Epoch), Lease: encodeDuration(c.Lease)}, err
}

// DecodeHeartbeat reads the request to renew a lease.
func DecodeHeartbeat(m *pb.HeartbeatRequest) (name string, c study.Heartbeat, err error) {
	var d decoder
	name, trial, err := ParseTrialName(m.GetName())
	if err != nil {
		return "", study.Heartbeat{}, err
	}
	c = study.Heartbeat{Trial: trial, Epoch: number[int](&d, "epoch", m.GetEpoch()), Lease: d.duration("lease", m.GetLease())}
	return name, c, d.err
}

// EncodeEnqueue encodes the request to put a configuration in the queue.
func EncodeEnqueue(name string, c study.Enqueue) (*pb.EnqueueTrialRequest, error) {
	parent, err := StudyName(name)
	return &pb.EnqueueTrialRequest{RequestId: c.RequestID, Parent: parent, Config: EncodeConfig(c.Config), Attributes: c.Attributes}, err
}

// DecodeEnqueue reads the request to put a configuration in the queue.
func DecodeEnqueue(m *pb.EnqueueTrialRequest) (name string, c study.Enqueue, err error) {
	name, err = ParseStudyName(m.GetParent())
	return name, study.Enqueue{RequestID: m.GetRequestId(), Config: DecodeConfig(m.GetConfig()), Attributes: orNil(study.Attributes(m.GetAttributes()))}, err
}

// EncodeAdd encodes the request to add a finished trial.
func EncodeAdd(name string, c study.Add) (*pb.AddTrialRequest, error) {
	parent, err := StudyName(name)
	if err != nil {
		return nil, err
	}
	reports, err := encodeNewReports(c.Reports)
	if err != nil {
		return nil, err
	}
	outcome, err := EncodeOutcome(c.Outcome)
	return &pb.AddTrialRequest{RequestId: c.RequestID, Parent: parent, Config: EncodeConfig(c.Config), Reports: reports, Outcome: outcome, Attributes: c.Attributes}, err
}

// DecodeAdd reads the request to add a finished trial.
func DecodeAdd(m *pb.AddTrialRequest) (name string, c study.Add, err error) {
	var d decoder
	name, err = ParseStudyName(m.GetParent())
	if err != nil {
		return "", study.Add{}, err
	}
	c = study.Add{
		RequestID: m.GetRequestId(), Config: DecodeConfig(m.GetConfig()), Reports: d.reports(m.GetReports()),
		Outcome: d.outcome(m.GetOutcome()), Attributes: orNil(study.Attributes(m.GetAttributes())),
	}
	return name, c, d.err
}

// EncodeNew encodes one of many trials to add, which is a study.Add or study.Enqueue.
func EncodeNew(c study.Command) (*pb.NewTrial, error) {
	if e, ok := c.(study.Enqueue); ok {
		return &pb.NewTrial{RequestId: e.RequestID, Config: EncodeConfig(e.Config), Attributes: e.Attributes, Enqueue: true}, nil
	}
	add := c.(study.Add)
	reports, err := encodeNewReports(add.Reports)
	if err != nil {
		return nil, err
	}
	outcome, err := EncodeOutcome(add.Outcome)
	return &pb.NewTrial{RequestId: add.RequestID, Config: EncodeConfig(add.Config), Attributes: add.Attributes, Reports: reports, Outcome: outcome}, err
}

// DecodeAddAll reads the request to add many trials.
func DecodeAddAll(m *pb.AddTrialsRequest) (name string, commands []study.Command, err error) {
	name, err = ParseStudyName(m.GetParent())
	if err == nil {
		err = tuner.CheckMany(len(m.GetTrials())) // before they take memory
	}
	if err != nil {
		return "", nil, err
	}
	for i, t := range m.GetTrials() {
		c, err := decodeNew(t)
		if err != nil {
			var at *study.InvalidError
			if errors.As(err, &at) {
				at.Field = fmt.Sprintf("trials[%d].%s", i, at.Field)
			}
			return "", nil, err
		}
		commands = append(commands, c)
	}
	return name, commands, nil
}

func decodeNew(m *pb.NewTrial) (study.Command, error) {
	config, attributes := DecodeConfig(m.GetConfig()), orNil(study.Attributes(m.GetAttributes()))
	if m.GetEnqueue() {
		if m.GetOutcome() != nil || len(m.GetReports()) > 0 {
			return nil, &study.InvalidError{
				Field: "enqueue", Value: "true", Rule: "must not be set for a trial that has an outcome or reports",
				Remedy: "leave them out, or enqueue if it has been run",
			}
		}
		return study.Enqueue{RequestID: m.GetRequestId(), Config: config, Attributes: attributes}, nil
	}
	var d decoder
	c := study.Add{RequestID: m.GetRequestId(), Config: config, Attributes: attributes, Reports: d.reports(m.GetReports()), Outcome: d.outcome(m.GetOutcome())}
	return c, d.err
}

// EncodeAdded encodes the answer to many trials, which has their numbers.
func EncodeAdded(numbers []int) *pb.AddTrialsResponse {
	m := &pb.AddTrialsResponse{}
	for _, n := range numbers {
		m.Numbers = append(m.Numbers, int64(n))
	}
	return m
}

// DecodeAdded reads the answer to a number of trials.
func DecodeAdded(m *pb.AddTrialsResponse, of int) (numbers []int, err error) {
	if n := len(m.GetNumbers()); n != of {
		return nil, invalid("numbers", n, fmt.Sprintf("must be %d, as many as there are trials", of))
	}
	var d decoder
	for _, n := range m.GetNumbers() {
		numbers = append(numbers, number[int](&d, "numbers", n))
	}
	return numbers, d.err
}

// EncodeFilter encodes the request for a page of trials.
func EncodeFilter(name string, f tuner.Filter) (*pb.ListTrialsRequest, error) {
	parent, err := StudyName(name)
	m := &pb.ListTrialsRequest{Parent: parent, PageSize: int32Of(f.Limit), PageToken: PageToken(f.First), Worker: f.Worker}
	for _, s := range f.States {
		m.States = append(m.States, pb.TrialState(s))
	}
	if f.Reports {
		m.View = pb.TrialView_TRIAL_VIEW_FULL
	}
	return m, err
}

// DecodeFilter reads the request for a page of trials.
func DecodeFilter(m *pb.ListTrialsRequest) (name string, f tuner.Filter, err error) {
	var d decoder
	name, err = ParseStudyName(m.GetParent())
	if err != nil {
		return "", tuner.Filter{}, err
	}
	f = tuner.Filter{
		First: d.pageToken(m.GetPageToken(), "trial"), Limit: int(m.GetPageSize()),
		Worker: m.GetWorker(), Reports: DecodeView(m.GetView()),
	}
	for _, s := range m.GetStates() {
		f.States = append(f.States, enum(&d, "states", s, study.Pruned))
	}
	return name, f, d.err
}

// DecodeView reports whether a view has the reports of a trial.
func DecodeView(v pb.TrialView) (reports bool) { return v == pb.TrialView_TRIAL_VIEW_FULL }

// EncodeReportsPage encodes the request for a page of the reports of a trial.
func EncodeReportsPage(name string, number, first, limit int) (*pb.ListReportsRequest, error) {
	parent, err := TrialName(name, number)
	return &pb.ListReportsRequest{Parent: parent, PageSize: int32Of(limit), PageToken: PageToken(first)}, err
}

// DecodeReportsPage reads the request for a page of the reports of a trial.
func DecodeReportsPage(m *pb.ListReportsRequest) (name string, number, first, limit int, err error) {
	var d decoder
	name, number, err = ParseTrialName(m.GetParent())
	if err != nil {
		return "", 0, 0, 0, err
	}
	return name, number, d.pageToken(m.GetPageToken(), "report"), int(m.GetPageSize()), d.err
}

// DecodeBestPage reads the request for a page of the best trials, starting with number
// first.
func DecodeBestPage(m *pb.GetBestRequest) (name string, first int, err error) {
	var d decoder
	name, err = ParseStudyName(m.GetParent())
	if err != nil {
		return "", 0, err
	}
	return name, d.pageToken(m.GetPageToken(), "trial"), d.err
}

// pageToken reads a token of PageToken.
func (d *decoder) pageToken(token, of string) int {
	if token == "" {
		return 0
	}
	first, err := strconv.Atoi(token)
	if err != nil {
		d.fail(invalid("page_token", token, "must be the number of a "+of+", as next_page_token gave it"))
	}
	return first
}

// PageToken returns the token for the page that starts with the trial or report of a
// number.
func PageToken(first int) string {
	if first == 0 {
		return ""
	}
	return strconv.Itoa(first)
}

// EncodePage encodes the request for a page of studies.
func EncodePage(after string, limit int) *pb.ListStudiesRequest {
	return &pb.ListStudiesRequest{PageSize: int32Of(limit), PageToken: after}
}
