package client

import (
	"context"
	"slices"

	"google.golang.org/grpc"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/protobuf/proto"

	pb "github.com/bkbtuner/bkb/proto/tuner/v1"
	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/study"
	"github.com/bkbtuner/bkb/tuner/surrogate"
	"github.com/bkbtuner/bkb/tuner/wire"
)

func invoke[C, R any, Q, A proto.Message](ctx context.Context, c *Client, m wire.Call[C, R, Q, A], name string, command C) (R, error) {
	request, err := m.Encode(name, command)
	if err != nil {
		var none R
		return none, err
	}
	k := reads
	if m.Need >= wire.NeedWork {
		k = writes
	}
	send := func(ctx context.Context, request Q, o ...grpc.CallOption) (A, error) {
		answer := wire.New[A]()
		return answer, c.conn.Invoke(ctx, m.FullName(), request, answer, o...)
	}
	return call(ctx, c, k, send, request, m.DecodeAnswer)
}

// The methods below are those of [tuner.Service], except GetCaller and Healthy.

func (c *Client) CreateStudy(ctx context.Context, name string, cmd study.Create) (tuner.Created, error) {
	identified(&cmd.RequestID)
	return invoke(ctx, c, wire.CreateStudy, name, cmd)
}

func (c *Client) Study(ctx context.Context, name string) (tuner.Study, error) {
	return invoke(ctx, c, wire.GetStudy, name, struct{}{})
}

type page[T any] struct {
	list []T
	more bool
}

// Studies implements [tuner.Service]. A page may also end where a message would
// become too large.
func (c *Client) Studies(ctx context.Context, after string, limit int) ([]tuner.Study, bool, error) {
	p, err := call(ctx, c, reads, c.stub.ListStudies, wire.EncodePage(after, limit), func(m *pb.ListStudiesResponse) (page[tuner.Study], error) {
		list, err := wire.DecodeStudies(m.GetStudies())
		return page[tuner.Study]{list, m.GetNextPageToken() != ""}, err
	})
	return p.list, p.more, err
}

// GetCaller returns who the server takes this client for.
func (c *Client) GetCaller(ctx context.Context) (*pb.Caller, error) {
	return call(ctx, c, reads, c.stub.GetCaller, &pb.GetCallerRequest{}, func(m *pb.Caller) (*pb.Caller, error) { return m, nil })
}

// DeleteStudy implements [tuner.Service]. It looks at the study first, to name it
// by its id.
func (c *Client) DeleteStudy(ctx context.Context, name string) error {
	s, err := c.Study(ctx, name)
	if err != nil {
		return err
	}
	m, err := wire.EncodeDelete(name, s.ID, tuner.NewRequestID())
	if err != nil {
		return err
	}
	_, err = call(ctx, c, writes, c.stub.DeleteStudy, m, nothing[*pb.DeleteStudyResponse])
	if tuner.CodeOf(err) == tuner.NotFound {
		return nil // an earlier try deleted it, or another client
	}
	return err
}

func nothing[A any](A) (struct{}, error) { return struct{}{}, nil }

func (c *Client) Pause(ctx context.Context, name string, cmd study.Pause) (tuner.Study, error) {
	identified(&cmd.RequestID)
	return invoke(ctx, c, wire.PauseStudy, name, cmd)
}

func (c *Client) Resume(ctx context.Context, name string, cmd study.Resume) (tuner.Study, error) {
	identified(&cmd.RequestID)
	return invoke(ctx, c, wire.ResumeStudy, name, cmd)
}

func (c *Client) Finish(ctx context.Context, name string, cmd study.Finish) (tuner.Study, error) {
	identified(&cmd.RequestID)
	return invoke(ctx, c, wire.FinishStudy, name, cmd)
}

func (c *Client) Extend(ctx context.Context, name string, cmd study.Extend) (tuner.Study, error) {
	identified(&cmd.RequestID)
	return invoke(ctx, c, wire.ExtendStudy, name, cmd)
}

func (c *Client) SetAttributes(ctx context.Context, name string, cmd study.SetAttributes) error {
	identified(&cmd.RequestID)
	_, err := invoke(ctx, c, wire.SetAttributes, name, cmd)
	return err
}

func (c *Client) Ask(ctx context.Context, name string, cmd study.Ask) (tuner.Asked, error) {
	identified(&cmd.RequestID)
	return invoke(ctx, c, wire.Ask, name, cmd)
}

func (c *Client) Tell(ctx context.Context, name string, cmd study.Tell) (tuner.Told, error) {
	identified(&cmd.RequestID)
	if cmd.Next != nil {
		next := *cmd.Next
		identified(&next.RequestID)
		cmd.Next = &next
	}
	return invoke(ctx, c, wire.Tell, name, cmd)
}

func (c *Client) Report(ctx context.Context, name string, cmd study.ReportValues) (tuner.Verdict, error) {
	identified(&cmd.RequestID)
	return invoke(ctx, c, wire.Report, name, cmd)
}

func (c *Client) Heartbeat(ctx context.Context, name string, cmd study.Heartbeat) (tuner.Verdict, error) {
	return invoke(ctx, c, wire.Heartbeat, name, cmd)
}

func (c *Client) Enqueue(ctx context.Context, name string, cmd study.Enqueue) (study.Trial, error) {
	identified(&cmd.RequestID)
	return invoke(ctx, c, wire.EnqueueTrial, name, cmd)
}

func (c *Client) Add(ctx context.Context, name string, cmd study.Add) (study.Trial, error) {
	identified(&cmd.RequestID)
	return invoke(ctx, c, wire.AddTrial, name, cmd)
}

func (c *Client) Trial(ctx context.Context, name string, number int) (study.Trial, error) {
	resource, err := wire.TrialName(name, number)
	if err != nil {
		return study.Trial{}, err
	}
	return call(ctx, c, reads, c.stub.GetTrial, &pb.GetTrialRequest{Name: resource}, wire.DecodeTrial)
}

// Reports implements [tuner.Service]. A page may also end where a message would become
// too large.
func (c *Client) Reports(ctx context.Context, name string, number, first, limit int) ([]study.Report, bool, error) {
	m, err := wire.EncodeReportsPage(name, number, first, limit)
	if err != nil {
		return nil, false, err
	}
	p, err := call(ctx, c, reads, c.stub.ListReports, m, func(m *pb.ListReportsResponse) (page[study.Report], error) {
		list, err := wire.DecodeReports(m.GetReports())
		return page[study.Report]{list, m.GetNextPageToken() != ""}, err
	})
	return p.list, p.more, err
}

// complete adds the reports that did not fit into an answer to the trials with these
// indices.
func (c *Client) complete(ctx context.Context, name string, trials []study.Trial, omitted []int) error {
	for _, i := range omitted {
		t := &trials[i]
		t.Reports = nil
		for more := true; more; {
			reports, further, err := c.Reports(ctx, name, t.Number, len(t.Reports), 0)
			if err != nil {
				return err
			}
			t.Reports = append(t.Reports, reports...)
			more = further && len(reports) > 0
		}
	}
	return nil
}

// Trials implements [tuner.Service]. A page may also end where a message would
// become too large. Reports that do not fit beside their trial are read page by page.
func (c *Client) Trials(ctx context.Context, name string, f tuner.Filter) ([]study.Trial, bool, error) {
	m, err := wire.EncodeFilter(name, f)
	if err != nil {
		return nil, false, err
	}
	var omitted []int
	p, err := call(ctx, c, reads, c.stub.ListTrials, m, func(m *pb.ListTrialsResponse) (page[study.Trial], error) {
		omitted = nil
		for i, t := range m.GetTrials() {
			if f.Reports && slices.Contains(t.GetOmitted(), wire.OmittedReports) {
				omitted = append(omitted, i)
			}
		}
		list, err := wire.DecodeTrials(m.GetTrials())
		return page[study.Trial]{list, m.GetNextPageToken() != ""}, err
	})
	if err == nil {
		err = c.complete(ctx, name, p.list, omitted)
	}
	return p.list, p.more, err
}

func (c *Client) Diagnose(ctx context.Context, name string) (surrogate.Diagnosis, error) {
	return invoke(ctx, c, wire.GetDiagnosis, name, struct{}{})
}

func (c *Client) Predict(ctx context.Context, name string, q tuner.PredictQuery) (tuner.Predictions, error) {
	return invoke(ctx, c, wire.Predict, name, q)
}

func (c *Client) Importance(ctx context.Context, name string, q tuner.ImportanceQuery) (tuner.Importance, error) {
	return invoke(ctx, c, wire.GetImportance, name, q)
}

func (c *Client) Best(ctx context.Context, name string) ([]study.Trial, error) {
	parent, err := wire.StudyName(name)
	if err != nil {
		return nil, err
	}
	var best []study.Trial
	for token, more := "", true; more; more = token != "" {
		page, err := call(ctx, c, reads, c.stub.GetBest, &pb.GetBestRequest{Parent: parent, PageToken: token}, func(m *pb.GetBestResponse) ([]study.Trial, error) {
			token = m.GetNextPageToken()
			return wire.DecodeTrials(m.GetTrials())
		})
		if err != nil {
			return nil, err
		}
		best = append(best, page...)
	}
	return best, nil
}

func (c *Client) WriteArtifact(ctx context.Context, name string, cmd tuner.WriteArtifact) (tuner.WrittenArtifact, error) {
	return invoke(ctx, c, wire.WriteArtifact, name, cmd)
}

func (c *Client) ReadArtifact(ctx context.Context, name string, q tuner.ReadArtifact) (tuner.ArtifactPart, error) {
	return invoke(ctx, c, wire.ReadArtifact, name, q)
}

func (c *Client) Artifacts(ctx context.Context, name string, q tuner.ListArtifacts) ([]tuner.Artifact, error) {
	return invoke(ctx, c, wire.ListArtifacts, name, q)
}

func (c *Client) DeleteArtifact(ctx context.Context, name string, cmd tuner.DeleteArtifact) error {
	_, err := invoke(ctx, c, wire.DeleteArtifact, name, cmd)
	return err
}

// Healthy asks once whether the server serves. It needs no token. serving is false if the
// server answers that it does not serve, as a stopping server does. An error means that
// it does not answer.
func (c *Client) Healthy(ctx context.Context) (serving bool, err error) {
	if err := c.ready(ctx); err != nil {
		return false, err
	}
	answer, err := healthpb.NewHealthClient(c.conn).Check(ctx, &healthpb.HealthCheckRequest{}, grpc.WaitForReady(false))
	if err != nil {
		return false, c.conclude(ctx, err, false)
	}
	return answer.GetStatus() == healthpb.HealthCheckResponse_SERVING, nil
}
