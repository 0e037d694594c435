package server_test

import (
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	pb "github.com/bkbtuner/bkb/proto/tuner/v1"
	"github.com/bkbtuner/bkb/tuner/memlimit"
	"github.com/bkbtuner/bkb/tuner/server"
	"github.com/bkbtuner/bkb/tuner/wire"
)

// TestMemoryRefuses checks that large calls are refused when memory is short, also of
// admins, with a time to retry. Calls that end something and small calls pass.
func TestMemoryRefuses(t *testing.T) {
	path := tokenPath(t)
	ctx := as(t.Context(), addToken(t, path, server.Scope{Role: server.RoleAdmin}))
	var log syncBuffer
	r := start(t, withStudies(t), server.Options{TokenFile: path, Memory: memlimit.New(1), Logger: log.logger()})
	c := pb.NewTunerClient(r.connect(t))
	const parent, trial = "studies/mine", "studies/mine/trials/0"
	failed := &pb.Outcome{State: pb.TrialState_TRIAL_STATE_FAILED}
	stream := func(receive func() error, err error) error {
		if err == nil {
			err = receive()
		}
		return err
	}
	for _, test := range []struct {
		name string
		call func() error
		want codes.Code
	}{
		{"ask", func() error { _, err := c.Ask(ctx, &pb.AskRequest{Parent: parent}); return err }, codes.ResourceExhausted},
		{"report", func() error {
			_, err := c.Report(ctx, &pb.ReportRequest{Name: trial, Reports: []*pb.IntermediateValues{{Values: map[string]float64{"loss": 1}}}})
			return err
		}, codes.ResourceExhausted},
		{"create", func() error { _, err := c.CreateStudy(ctx, createRequest("new")); return err }, codes.ResourceExhausted},
		{"enqueue", func() error { _, err := c.EnqueueTrial(ctx, &pb.EnqueueTrialRequest{Parent: parent}); return err }, codes.ResourceExhausted},
		{"list", func() error { _, err := c.ListTrials(ctx, &pb.ListTrialsRequest{Parent: parent}); return err }, codes.ResourceExhausted},
		{"reports", func() error { _, err := c.ListReports(ctx, &pb.ListReportsRequest{Parent: trial}); return err }, codes.ResourceExhausted},
		{"watch", func() error {
			s, err := c.Watch(ctx, &pb.WatchRequest{Parent: parent})
			return stream(func() error { _, err := s.Recv(); return err }, err)
		}, codes.ResourceExhausted},
		{"backup", func() error {
			s, err := c.Backup(ctx, &pb.BackupRequest{})
			return stream(func() error { _, err := s.Recv(); return err }, err)
		}, codes.ResourceExhausted},
		{"a large tell", func() error {
			_, err := c.Tell(ctx, &pb.TellRequest{Name: trial, Outcome: &pb.Outcome{State: failed.State, Attributes: map[string]string{"a": strings.Repeat("x", 8000)}}})
			return err
		}, codes.ResourceExhausted},
		{"a trial with its reports", func() error {
			_, err := c.GetTrial(ctx, &pb.GetTrialRequest{Name: trial, View: pb.TrialView_TRIAL_VIEW_FULL})
			return err
		}, codes.ResourceExhausted},
		{"a trial", func() error { _, err := c.GetTrial(ctx, &pb.GetTrialRequest{Name: trial}); return err }, codes.OK},
		{"heartbeat", func() error { _, err := c.Heartbeat(ctx, &pb.HeartbeatRequest{Name: trial}); return err }, codes.OK},
		{"tell, without the next trial", func() error {
			told, err := c.Tell(ctx, &pb.TellRequest{Name: trial, Outcome: failed, Next: &pb.AskRequest{}})
			if told.GetNext() != nil {
				t.Error("a tell hands out trials that an ask does not")
			}
			return err
		}, codes.OK},
		{"study", func() error { _, err := c.GetStudy(ctx, &pb.GetStudyRequest{Name: parent}); return err }, codes.OK},
		{"finish", func() error { _, err := c.FinishStudy(ctx, &pb.FinishStudyRequest{Name: parent}); return err }, codes.OK},
		{"delete", func() error { _, err := c.DeleteStudy(ctx, &pb.DeleteStudyRequest{Name: parent}); return err }, codes.OK},
	} {
		err := test.call()
		if status.Code(err) != test.want {
			t.Errorf("%s: %v, want %s", test.name, err, test.want)
		}
		if answer, ok := wire.ReadError(err); ok && (!strings.Contains(err.Error(), "at most 1 bytes of memory (tuner serve --max-memory)") || answer.RetryAfter != time.Second) {
			t.Errorf("%s: %v, to try again after %s", test.name, err, answer.RetryAfter)
		}
	}
	if text := r.MetricsText(); !strings.Contains(text, `tuner_limited_total{limit="memory"}`) {
		t.Errorf("metrics: %s", text)
	}
	if n := strings.Count(log.String(), "limit=memory "); n != 1 {
		t.Errorf("%d lines in the log", n)
	}
}
