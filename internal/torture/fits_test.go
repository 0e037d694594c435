//go:build linux

package torture

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	pb "github.com/bkbtuner/bkb/proto/tuner/v1"
	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/study"
)

// plain connects to a server with the default limits of gRPC, as programs in other
// languages do. An answer may then take 4 MiB.
func plain(t testing.TB, address string) *grpc.ClientConn {
	t.Helper()
	return connect(t, address, insecure.NewCredentials())
}

// connect is plain with credentials.
func connect(t testing.TB, address string, by credentials.TransportCredentials) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(by))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
	})
	return conn
}

// largeMetric names the metrics of the largest trial.
func largeMetric(i int) string { return fmt.Sprintf("metric-%02d", i) }

// TestLargestTrial checks a trial with the most reports. A client with the default
// limits of gRPC can tell, list, watch and export it, and ask its study.
func TestLargestTrial(t *testing.T) {
	heavy(t)
	metrics := often(t, "METRICS", 2) // with 2, too, the reports take more than a message of gRPC's default
	db := filepath.Join(evidence(t, seed(t)), "tuner.db")
	s, err := serve(t, db, io.Discard, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.kill()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	c := pb.NewTunerClient(plain(t, s.address))
	const parent, trial = "studies/large", "studies/large/trials/0"
	if _, err := c.CreateStudy(ctx, &pb.CreateStudyRequest{StudyId: "large", Spec: &pb.StudySpec{
		Space:      `{"version":1,"parameters":{"x":{"type":"float","low":0.0,"high":1.0}}}`,
		Objectives: []*pb.Objective{{Name: "loss", Direction: pb.Direction_DIRECTION_MINIMIZE}},
		Proposer:   &pb.Component{Name: "random"},
	}}); err != nil {
		t.Fatal(err)
	}
	ask := func() *pb.AskResponse {
		t.Helper()
		asked, err := c.Ask(ctx, &pb.AskRequest{Parent: parent, Worker: "w"})
		if err != nil {
			t.Fatalf("asking: %v", err)
		}
		return asked
	}
	epoch := ask().Trials[0].Epoch
	batch := study.MaxReportBatch
	for batch*metrics*22 > 1<<20 { // the largest message that the server accepts
		batch /= 2
	}
	begun := time.Now()
	for step := 0; step < study.MaxReports; step += batch {
		if _, err := c.Report(ctx, &pb.ReportRequest{Name: trial, Epoch: epoch, Reports: largeReports(step, min(batch, study.MaxReports-step), metrics)}); err != nil {
			t.Fatalf("reporting step %d: %v", step, err)
		}
	}
	reported := time.Since(begun)
	if again := ask().Trials; len(again) != 1 || again[0].Name != trial || len(again[0].Reports) > 0 { // to the same worker
		t.Errorf("asked again, the worker gets %v", again)
	}
	told, err := c.Tell(ctx, &pb.TellRequest{Name: trial, Epoch: epoch, Outcome: &pb.Outcome{
		State: pb.TrialState_TRIAL_STATE_COMPLETED, Metrics: map[string]*pb.Metric{"loss": {Values: []float64{1}}},
	}})
	if err != nil || told.Trial.State != pb.TrialState_TRIAL_STATE_COMPLETED {
		t.Fatalf("telling: %v", err)
	}
	if asked := ask(); asked.Trials[0].Number != 1 {
		t.Errorf("asked for the next, the study answers %v", asked)
	}
	begun = time.Now()
	readLargest(ctx, t, c, metrics)
	listed := time.Since(begun)
	begun = time.Now()
	watchLargest(ctx, t, c)
	watched := time.Since(begun)
	begun = time.Now()
	exportLargest(ctx, t, s, metrics)
	figures(t, "a trial of %d reports with %d metrics each: reported in %.1f s, listed in %.1f s, watched in %.1f s, exported in %.1f s by a client of gRPC's default limits",
		study.MaxReports, metrics, reported.Seconds(), listed.Seconds(), watched.Seconds(), time.Since(begun).Seconds())
}

// largeReports returns n reports from a step on.
func largeReports(step, n, metrics int) []*pb.IntermediateValues {
	reports := make([]*pb.IntermediateValues, n)
	for i := range reports {
		values := make(map[string]float64, metrics)
		for m := range metrics {
			values[largeMetric(m)] = float64(step + i + m)
		}
		reports[i] = &pb.IntermediateValues{Step: int64(step + i), Values: values}
	}
	return reports
}

// readLargest reads the trial by all calls that return it, and reads its reports.
func readLargest(ctx context.Context, t *testing.T, c pb.TunerClient, metrics int) {
	t.Helper()
	const parent, trial = "studies/large", "studies/large/trials/0"
	if _, err := c.GetStudy(ctx, &pb.GetStudyRequest{Name: parent}); err != nil {
		t.Errorf("the study: %v", err)
	}
	for _, view := range []pb.TrialView{pb.TrialView_TRIAL_VIEW_BASIC, pb.TrialView_TRIAL_VIEW_FULL} {
		one, err := c.GetTrial(ctx, &pb.GetTrialRequest{Name: trial, View: view})
		if err != nil || len(one.Reports) > 0 || (view == pb.TrialView_TRIAL_VIEW_FULL) != (len(one.Omitted) > 0) {
			t.Errorf("the trial in the view %s: %d reports, omitted are %q, %v", view, len(one.GetReports()), one.GetOmitted(), err)
		}
		all := 0
		for token, more := "", true; more; more = token != "" {
			page, err := c.ListTrials(ctx, &pb.ListTrialsRequest{Parent: parent, View: view, PageToken: token})
			if err != nil {
				t.Fatalf("the trials in the view %s: %v", view, err)
			}
			all += len(page.Trials)
			token = page.NextPageToken
		}
		if all != 2 {
			t.Errorf("%d trials in the view %s", all, view)
		}
	}
	if best, err := c.GetBest(ctx, &pb.GetBestRequest{Parent: parent}); err != nil || len(best.Trials) != 1 || best.Trials[0].Name != trial {
		t.Errorf("the best: %v, %v", best, err)
	}
	n := 0
	for token, more := "", true; more; more = token != "" {
		page, err := c.ListReports(ctx, &pb.ListReportsRequest{Parent: trial, PageToken: token})
		if err != nil {
			t.Fatalf("the reports from %q on: %v", token, err)
		}
		for _, r := range page.Reports {
			if r.Step != int64(n) || len(r.Values) != metrics || r.Values[largeMetric(metrics-1)] != float64(n+metrics-1) {
				t.Fatalf("report %d is %v", n, r)
			}
			n++
		}
		token = page.NextPageToken
	}
	if n != study.MaxReports {
		t.Errorf("%d reports in pages", n)
	}
}

// watchLargest watches the study from its beginning. Every report arrives once.
func watchLargest(ctx context.Context, t *testing.T, c pb.TunerClient) {
	t.Helper()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := c.Watch(ctx, &pb.WatchRequest{Parent: "studies/large"})
	if err != nil {
		t.Fatal(err)
	}
	for reports := 0; ; {
		event, err := stream.Recv()
		if err != nil {
			t.Fatalf("watching, after %d reports: %v", reports, err)
		}
		for _, r := range event.GetTrial().GetReports() {
			if r.Step != int64(reports) {
				t.Fatalf("the watch shows step %d after %d", r.Step, reports-1)
			}
			reports++
		}
		if event.Event == "told" {
			if reports != study.MaxReports {
				t.Errorf("the watch shows %d reports", reports)
			}
			return
		}
	}
}

// exportLargest exports the study with the program and reads it with the client.
func exportLargest(ctx context.Context, t *testing.T, s *serving, metrics int) {
	t.Helper()
	cmd := exec.CommandContext(ctx, tunerBinary(t), "--server", s.address, "export", "large", "-f", "json")
	cmd.Env, cmd.Stderr = append(os.Environ(), "TUNER_TOKEN=", "TUNER_DB="), os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var trials []struct {
		Reports []struct {
			Step   int                `json:"step"`
			Values map[string]float64 `json:"values"`
		} `json:"reports"`
	}
	decodeErr := json.NewDecoder(out).Decode(&trials)
	_, _ = io.Copy(io.Discard, out)
	if err := cmd.Wait(); err != nil || decodeErr != nil {
		t.Fatalf("exporting: %v, %v", err, decodeErr)
	}
	if len(trials) != 2 || len(trials[0].Reports) != study.MaxReports || len(trials[0].Reports[study.MaxReports-1].Values) != metrics {
		t.Errorf("%d trials are exported", len(trials))
	}
	c := s.dial(t)
	defer c.Close()
	whole, _, err := c.Trials(ctx, "large", tuner.Filter{Reports: true})
	if err != nil || len(whole) == 0 || len(whole[0].Reports) != study.MaxReports {
		t.Errorf("the client reads %d trials: %v", len(whole), err)
	}
}
