package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/bkbtuner/bkb/cmd/tuner/cli"
	"github.com/bkbtuner/bkb/cmd/tuner/record"
	"github.com/bkbtuner/bkb/cmd/tuner/trials"
	pb "github.com/bkbtuner/bkb/proto/optuna"
	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/study"
	"github.com/spf13/cobra"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	grpcstatus "google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// optunaClient returns a client of a server for Optuna.
func optunaClient(t *testing.T, dir, address string) pb.StorageServiceClient {
	t.Helper()
	if path, ok := strings.CutPrefix(address, "unix:"); ok && !filepath.IsAbs(path) {
		address = "unix:" + filepath.Join(dir, path)
	}
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return pb.NewStorageServiceClient(conn)
}

// A server that is killed after each call has, when it is started again, what it
// acknowledged. A client that goes on sees no difference.
func TestOptunaKilled(t *testing.T) {
	dir := shortDir(t)
	const float = `{"name": "FloatDistribution", "attributes": {"step": null, "low": 0.0, "high": 1.0, "log": false}}`
	id, trial, queued := int64(0), int64(0), int64(0)
	want := &pb.Trial{
		State: pb.TrialState_COMPLETE, Values: []float64{math.Inf(-1), math.MaxFloat64},
		Params: map[string]float64{"x": 0.1}, Distributions: map[string]string{"x": float},
		UserAttributes: map[string]string{"note": `"ü"`}, SystemAttributes: map[string]string{"nan": "NaN"},
		IntermediateValues: map[int64]float64{-1: math.SmallestNonzeroFloat64, 7: math.Inf(1)},
	}
	calls := []func(context.Context, pb.StorageServiceClient) error{
		func(ctx context.Context, c pb.StorageServiceClient) error {
			r, err := c.CreateNewStudy(ctx, &pb.CreateNewStudyRequest{StudyName: "digits", Directions: []pb.StudyDirection{pb.StudyDirection_MINIMIZE, pb.StudyDirection_MAXIMIZE}})
			id = r.GetStudyId()
			return err
		},
		func(ctx context.Context, c pb.StorageServiceClient) error {
			_, err := c.SetStudyUserAttribute(ctx, &pb.SetStudyUserAttributeRequest{StudyId: id, Key: "user", Value: "1"})
			return err
		},
		func(ctx context.Context, c pb.StorageServiceClient) error {
			_, err := c.SetStudySystemAttribute(ctx, &pb.SetStudySystemAttributeRequest{StudyId: id, Key: "system", Value: "2"})
			return err
		},
		func(ctx context.Context, c pb.StorageServiceClient) error {
			r, err := c.CreateNewTrial(ctx, &pb.CreateNewTrialRequest{StudyId: id, TemplateTrialIsNone: true})
			trial = r.GetTrialId()
			return err
		},
		func(ctx context.Context, c pb.StorageServiceClient) error {
			r, err := c.CreateNewTrial(ctx, &pb.CreateNewTrialRequest{StudyId: id, TemplateTrial: &pb.Trial{State: pb.TrialState_WAITING}})
			queued = r.GetTrialId()
			return err
		},
		func(ctx context.Context, c pb.StorageServiceClient) error {
			_, err := c.SetTrialParameter(ctx, &pb.SetTrialParameterRequest{TrialId: trial, ParamName: "x", ParamValueInternal: 0.1, Distribution: float})
			return err
		},
		func(ctx context.Context, c pb.StorageServiceClient) error {
			_, err := c.SetTrialIntermediateValue(ctx, &pb.SetTrialIntermediateValueRequest{TrialId: trial, Step: -1, IntermediateValue: math.SmallestNonzeroFloat64})
			return err
		},
		func(ctx context.Context, c pb.StorageServiceClient) error {
			_, err := c.SetTrialIntermediateValue(ctx, &pb.SetTrialIntermediateValueRequest{TrialId: trial, Step: 7, IntermediateValue: math.Inf(1)})
			return err
		},
		func(ctx context.Context, c pb.StorageServiceClient) error {
			_, err := c.SetTrialUserAttribute(ctx, &pb.SetTrialUserAttributeRequest{TrialId: trial, Key: "note", Value: `"ü"`})
			return err
		},
		func(ctx context.Context, c pb.StorageServiceClient) error {
			_, err := c.SetTrialSystemAttribute(ctx, &pb.SetTrialSystemAttributeRequest{TrialId: trial, Key: "nan", Value: "NaN"})
			return err
		},
		func(ctx context.Context, c pb.StorageServiceClient) error {
			r, err := c.SetTrialStateValues(ctx, &pb.SetTrialStateValuesRequest{TrialId: queued, State: pb.TrialState_RUNNING})
			if err == nil && !r.TrialUpdated {
				err = errors.New("the waiting trial did not start")
			}
			return err
		},
		func(ctx context.Context, c pb.StorageServiceClient) error {
			r, err := c.SetTrialStateValues(ctx, &pb.SetTrialStateValuesRequest{TrialId: queued, State: pb.TrialState_RUNNING})
			if err == nil && r.TrialUpdated {
				err = errors.New("the waiting trial started again")
			}
			return err
		},
		func(ctx context.Context, c pb.StorageServiceClient) error {
			_, err := c.SetTrialStateValues(ctx, &pb.SetTrialStateValuesRequest{TrialId: trial, State: pb.TrialState_COMPLETE, Values: want.Values})
			return err
		},
		func(ctx context.Context, c pb.StorageServiceClient) error {
			_, err := c.SetTrialStateValues(ctx, &pb.SetTrialStateValuesRequest{TrialId: trial, State: pb.TrialState_FAIL})
			if grpcstatus.Code(err) != codes.FailedPrecondition {
				return fmt.Errorf("a finished trial changes: %w", err)
			}
			return nil
		},
	}
	server := func() (*child, pb.StorageServiceClient) {
		c := startChild(t, dir, nil, "--listen", "unix:a.sock", "--optuna", "unix:b.sock")
		if c.state.Optuna != "unix:b.sock" {
			t.Fatalf("the ready file has %+v", c.state)
		}
		return c, optunaClient(t, dir, c.state.Optuna)
	}
	var started string
	for i, call := range calls {
		c, client := server()
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		if err := call(ctx, client); err != nil {
			t.Fatalf("call %d: %v: %s", i, err, c.stderr)
		}
		if err := c.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = c.Wait() // which was killed
		cancel()
	}
	c, client := server()
	got, err := client.GetTrial(t.Context(), &pb.GetTrialRequest{TrialId: trial})
	if err != nil {
		t.Fatal(err)
	}
	started = got.Trial.DatetimeStart
	if got.Trial.DatetimeComplete <= started || started == "" {
		t.Errorf("the trial began at %q and ended at %q", started, got.Trial.DatetimeComplete)
	}
	want.TrialId, want.DatetimeStart, want.DatetimeComplete = trial, started, got.Trial.DatetimeComplete
	if !proto.Equal(got.Trial, want) {
		t.Errorf("the trial is %v, want %v", got.Trial, want)
	}
	all, err := client.GetAllStudies(t.Context(), &pb.GetAllStudiesRequest{})
	if err != nil || len(all.Studies) != 1 || all.Studies[0].StudyName != "digits" || all.Studies[0].UserAttributes["user"] != "1" ||
		all.Studies[0].SystemAttributes["system"] != "2" || fmt.Sprint(all.Studies[0].Directions) != "[MINIMIZE MAXIMIZE]" {
		t.Errorf("the studies are %v, %v", all, err)
	}
	c.stdin.Close()
	if err := c.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = c.Wait()

	// Without the server, the study is listed and apart.
	do := func(args ...string) (int, string, string) {
		var out, errs bytes.Buffer
		code := run(t.Context(), append([]string{"--db", filepath.Join(dir, "tuner.db")}, args...), strings.NewReader(""), &out, &errs)
		return code, out.String(), errs.String()
	}
	_, out, errs := do("studies", "-f", "json")
	var studies []struct {
		Name   string         `json:"name"`
		Status string         `json:"status"`
		Counts map[string]int `json:"counts"`
	}
	if err := json.Unmarshal([]byte(out), &studies); err != nil || len(studies) != 1 || studies[0].Name != "optuna.digits" || studies[0].Status != "optuna" {
		t.Errorf("%v: %s%s", err, out, errs)
	}
	if _, out, _ := do("studies"); !strings.Contains(out, "optuna.digits") || !strings.Contains(out, "optuna ") {
		t.Errorf("the table is %s", out)
	}
	for _, args := range [][]string{{"ask", "optuna.digits"}, {"trials", "optuna.digits"}, {"best", "optuna.digits"}, {"expect", "optuna.digits", "x=1"}, {"enqueue", "optuna.digits", "x=1"}, {"run", "optuna.digits", "--log-dir", filepath.Join(dir, "logs"), "--", "true"}} {
		if code, _, errs := do(args...); code != 8 || !strings.Contains(errs, "the study belongs to Optuna") || !strings.Contains(errs, "tuner serve --optuna") {
			t.Errorf("%v: %d: %s", args, code, errs)
		}
	}
	if cli.Exists(filepath.Join(dir, "logs")) {
		t.Error("a run that was refused left a folder of logs")
	}
}

func TestServeOptunaMistakes(t *testing.T) {
	for want, args := range map[string][]string{
		"--optuna: refusing to listen on 0.0.0.0:0, because other machines can reach it": {"--optuna", "0.0.0.0:0"},
		`--optuna: "nowhere" must be host:port or unix:path`:                             {"--optuna", "nowhere"},
		"--optuna-stale needs --optuna, such as --optuna 127.0.0.1:13000":                {"--optuna-stale", "1h"},
		"--optuna-stale -1s: must be positive, such as 24h":                              {"--optuna", "127.0.0.1:0", "--optuna-stale", "-1s"},
	} {
		var errs bytes.Buffer
		dir := t.TempDir()
		if code := run(t.Context(), append([]string{"--db", filepath.Join(dir, "t.db"), "serve", "--listen", "127.0.0.1:0"}, args...), strings.NewReader(""), &errs, &errs); code != cli.ExitUsage || !strings.Contains(errs.String(), want) {
			t.Errorf("%v: %d: %s", args, code, errs.String())
		}
		if cli.Exists(filepath.Join(dir, "t.db")) {
			t.Errorf("%v: a database was made", args)
		}
	}
}

// Trials that run for too long without a change fail, also while clients wait.
func TestServeOptunaStale(t *testing.T) {
	dir := shortDir(t)
	c := startChild(t, dir, nil, "--listen", "unix:a.sock", "--optuna", "127.0.0.1:0", "--optuna-stale", "1s", "--until-eof")
	client := optunaClient(t, dir, c.state.Optuna)
	study, err := client.CreateNewStudy(t.Context(), &pb.CreateNewStudyRequest{StudyName: "s", Directions: make([]pb.StudyDirection, 1)})
	if err != nil {
		t.Fatal(err)
	}
	trial, err := client.CreateNewTrial(t.Context(), &pb.CreateNewTrialRequest{StudyId: study.StudyId, TemplateTrialIsNone: true})
	if err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		r, err := client.GetTrial(t.Context(), &pb.GetTrialRequest{TrialId: trial.TrialId})
		if err != nil {
			t.Fatal(err)
		}
		if r.Trial.State == pb.TrialState_FAIL {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("the trial is %v", r.Trial)
		}
	}
	c.stdin.Close()
	c.ends(t)
	if log := c.stderr.String(); !strings.Contains(log, "Listening for Optuna on 127.0.0.1:") || !strings.Contains(log, "a trial of Optuna did not change for too long") {
		t.Errorf("the log is %s", log)
	}
}

// Events of a study of Optuna name the trial and its state, and the status that the list of
// studies has.
func TestWatchOptuna(t *testing.T) {
	var out bytes.Buffer
	cmd := new(cobra.Command)
	cmd.SetOut(&out)
	spec := study.Spec{Proposer: study.Component{Name: study.Optuna}}
	for want, c := range map[string]struct {
		form  string
		trial *study.Trial
	}{
		"  foreign trial 3  running\n": {"text", &study.Trial{Number: 3, State: study.Running}},
		"  foreign trial 4\n":          {"text", &study.Trial{Number: 4}},
		"  foreign\n":                  {"text", nil},
		`"status":"optuna","trial":{"trial":3,"state":"running","config":{}}}` + "\n": {"jsonl", &study.Trial{Number: 3, State: study.Running}},
		`"status":"optuna","trial":{"trial":4,"config":{}}}` + "\n":                   {"jsonl", &study.Trial{Number: 4}},
	} {
		w := trials.Watching{Cmd: cmd, Form: c.form, Spec: spec, Judge: record.NewJudge(spec)}
		out.Reset()
		if err := w.Print(tuner.Happening{Kind: "foreign", Status: study.StatusActive, Trial: c.trial}); err != nil || !strings.HasSuffix(out.String(), want) {
			t.Errorf("%v: %s, want %s", err, out.String(), want)
		}
	}
}
