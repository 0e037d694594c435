package wire

import (
	"errors"
	"fmt"
	"math"
	"strconv"

	"google.golang.org/protobuf/proto"

	pb "github.com/bkbtuner/bkb/proto/tuner/v1"
	"github.com/bkbtuner/bkb/store"
	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/space"
	"github.com/bkbtuner/bkb/tuner/study"
)

// EncodeCreate encodes the request to create a study.
func EncodeCreate(name string, c study.Create) (*pb.CreateStudyRequest, error) {
	m, err := encode[*pb.CreateStudyRequest](c)
	m.StudyId = name
	return m, err
}

// DecodeCreate reads the request to create a study, with warnings about its space.
func DecodeCreate(m *pb.CreateStudyRequest) (name string, c study.Create, warnings []space.Warning, err error) {
	err = refused(table.Decode(&warnings, &c, m))
	return m.GetStudyId(), c, warnings, err
}

// EncodeDelete encodes the request to delete a study. If the id is not 0, only the study
// with this id is deleted.
func EncodeDelete(name string, id store.StudyID, requestID string) (*pb.DeleteStudyRequest, error) {
	resource, err := StudyName(name)
	return &pb.DeleteStudyRequest{RequestId: requestID, Name: resource, Uid: uint64(id)}, err
}

// encoded returns a method whose requests are completed by finish.
func encoded[C, R any, Q, A proto.Message](c Call[C, R, Q, A], finish func(Q)) Call[C, R, Q, A] {
	plain := c.Encode
	c.Encode = func(name string, command C) (Q, error) {
		m, err := plain(name, command)
		if err == nil {
			finish(m)
		}
		return m, err
	}
	return c
}

// encodeAuto lets an ask of [tuner.AutoCount] trials have a field of its own.
func encodeAuto(m *pb.AskRequest) {
	if m.GetCount() == tuner.AutoCount {
		m.Count, m.AutoCount = 0, true
	}
}

func finishAsk(m *pb.AskRequest, c *study.Ask) error {
	switch {
	case m.GetAutoCount() && c.Count != 0:
		return invalid("count", c.Count, "must be left out with auto_count")
	case m.GetAutoCount():
		c.Count = tuner.AutoCount
	case c.Count == tuner.AutoCount:
		return invalid("count", c.Count, "must not be negative")
	}
	return nil
}

func finishTell(m *pb.TellRequest, c *study.Tell) error {
	if m.GetNext() == nil {
		return nil
	}
	if parent := m.GetNext().GetParent(); parent != "" {
		return invalid("next.parent", parent, "must be left out, because the next trials are of the same study")
	}
	return finishAsk(m.GetNext(), c.Next)
}

// EncodeNew encodes one of many trials to add, which is a study.Add or study.Enqueue.
func EncodeNew(c study.Command) (*pb.NewTrial, error) {
	if e, ok := c.(study.Enqueue); ok {
		m, err := encode[*pb.NewTrial](e)
		m.Enqueue = true
		return m, err
	}
	return encode[*pb.NewTrial](c.(study.Add))
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
	if !m.GetEnqueue() {
		return decode[study.Add](m)
	}
	if m.GetOutcome() != nil || len(m.GetReports()) > 0 {
		return nil, &study.InvalidError{
			Field: "enqueue", Value: "true", Rule: "must not be set for a trial that has an outcome or reports",
			Remedy: "leave them out, or enqueue if it has been run",
		}
	}
	return decode[study.Enqueue](m)
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
	for _, n := range m.GetNumbers() {
		numbers = append(numbers, int(n))
	}
	return numbers, nil
}

var encodeFilter, decodeFilter = request(func(m *pb.ListTrialsRequest, f *tuner.Filter) (err error) {
	f.Reports = DecodeView(m.GetView())
	f.First, err = pageToken(m.GetPageToken(), "trial")
	return err
})

// EncodeFilter encodes the request for a page of trials.
func EncodeFilter(name string, f tuner.Filter) (*pb.ListTrialsRequest, error) {
	m, err := encodeFilter(name, f)
	if err != nil {
		return nil, err
	}
	m.PageToken = PageToken(f.First)
	if f.Reports {
		m.View = pb.TrialView_TRIAL_VIEW_FULL
	}
	return m, nil
}

// DecodeFilter reads the request for a page of trials.
func DecodeFilter(m *pb.ListTrialsRequest) (string, tuner.Filter, error) { return decodeFilter(m) }

// DecodeView reports whether a view has the reports of a trial.
func DecodeView(v pb.TrialView) (reports bool) { return v == pb.TrialView_TRIAL_VIEW_FULL }

// EncodeReportsPage encodes the request for a page of the reports of a trial.
func EncodeReportsPage(name string, number, first, limit int) (*pb.ListReportsRequest, error) {
	parent, err := TrialName(name, number)
	return &pb.ListReportsRequest{Parent: parent, PageSize: int32Of(limit), PageToken: PageToken(first)}, err
}

// DecodeReportsPage reads the request for a page of the reports of a trial.
func DecodeReportsPage(m *pb.ListReportsRequest) (name string, number, first, limit int, err error) {
	if name, number, err = ParseTrialName(m.GetParent()); err == nil {
		first, err = pageToken(m.GetPageToken(), "report")
	}
	return name, number, first, int(m.GetPageSize()), err
}

// DecodeBestPage reads the request for a page of the best trials, starting with number
// first.
func DecodeBestPage(m *pb.GetBestRequest) (name string, first int, err error) {
	if name, err = ParseStudyName(m.GetParent()); err == nil {
		first, err = pageToken(m.GetPageToken(), "trial")
	}
	return name, first, err
}

func pageToken(token, of string) (first int, err error) {
	if token == "" {
		return 0, nil
	}
	if first, err = strconv.Atoi(token); err != nil {
		err = invalid("page_token", token, "must be the number of a "+of+", as next_page_token gave it")
	}
	return first, err
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

// int32Of saturates, so that a number that is too large stays too large.
func int32Of(n int) int32 { return int32(min(max(n, math.MinInt32), math.MaxInt32)) }
