package server_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/grpc/metadata"

	pb "github.com/bkbtuner/bkb/proto/tuner/v1"
	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/server"
)

// TestAudit checks that each change writes one line to the log at the default level and
// to the file. The line has the caller, the method, the study or trial, the address and
// the request id. Reads and refused calls write none.
func TestAudit(t *testing.T) {
	var log syncBuffer
	tokens, file := tokenPath(t), filepath.Join(t.TempDir(), "audit.jsonl")
	admin := addToken(t, tokens, server.Scope{Role: server.RoleAdmin})
	worker := addToken(t, tokens, server.Scope{Role: server.RoleWorker})
	infos, err := server.ListTokens(tokens)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte("{\"earlier\":true}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	r := start(t, onDisk(t, filepath.Join(t.TempDir(), "tuner.db")), server.Options{
		TokenFile: tokens, AuditFile: file, Limits: server.Limits{WriteRate: 32 << 10},
		Logger: slog.New(slog.NewTextHandler(&log, nil)),
	})
	c := pb.NewTunerClient(r.connect(t))
	asAdmin, asWorker := as(t.Context(), admin), as(t.Context(), worker)
	asked, err := c.Ask(asWorker, &pb.AskRequest{Parent: "studies/theirs", Worker: "w7", RequestId: "r-1", Count: 2})
	if err != nil {
		t.Fatal(err)
	}
	trial := asked.GetTrials()[0].GetName()
	told, err := c.Tell(asWorker, &pb.TellRequest{Name: trial, RequestId: "r-2", Outcome: newTrials(1)[0].GetOutcome(), Next: &pb.AskRequest{RequestId: "r-2b", Count: 2}})
	if err != nil || len(told.GetNext().GetTrials()) != 2 {
		t.Fatalf("%v, %v", told, err)
	}
	traced := metadata.AppendToOutgoingContext(asAdmin, "traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")
	if _, err := c.SetAttributes(traced, &pb.SetAttributesRequest{Name: trial, Attributes: map[string]string{"a": "b"}, RequestId: "r-3"}); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(log.String(), "trace_id=4bf92f3577b34da6a3ce929d0e0e4736") || strings.Count(log.String(), "trace_id") != 1 {
		t.Errorf("the log has no trace id, or too many:\n%s", log.String())
	}
	// The rate of changes does not hold for files, and only the last part is a line.
	data := make([]byte, tuner.MaxArtifactPart)
	write := &pb.WriteArtifactRequest{Name: trial, File: "m.pt", UploadId: "u", Size: 3 * tuner.MaxArtifactPart, Data: data}
	sum := sha256.New()
	for ; write.Offset < write.Size; write.Offset += tuner.MaxArtifactPart {
		if sum.Write(data); write.Offset == write.Size-tuner.MaxArtifactPart {
			write.Sha256 = hex.EncodeToString(sum.Sum(nil))
		}
		if _, err := c.WriteArtifact(asWorker, write); err != nil {
			t.Fatal(err)
		}
	}
	_, _ = c.GetStudy(asAdmin, &pb.GetStudyRequest{Name: "studies/theirs"})
	_, _ = c.Heartbeat(asWorker, &pb.HeartbeatRequest{Name: trial})
	if _, err := c.DeleteStudy(asWorker, &pb.DeleteStudyRequest{Name: "studies/theirs"}); err == nil {
		t.Fatal("a worker deleted a study")
	}
	if _, err := c.DeleteStudy(asAdmin, &pb.DeleteStudyRequest{Name: "studies/theirs"}); err != nil {
		t.Fatal(err)
	}
	r.stop()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	if lines[0] != `{"earlier":true}` {
		t.Errorf("the file was not appended to: %s", lines[0])
	}
	type line struct {
		Who, What, On, From, Worker, Code string
		File                              string
		RequestID                         string `json:"request_id"`
	}
	want := []line{
		{"token " + infos[1].ID, "Ask", asked.GetTrials()[0].GetName() + " " + asked.GetTrials()[1].GetName(), "127.0.0.1", "w7", "OK", "", "r-1"},
		{"token " + infos[1].ID, "Tell", trial + " " + told.GetNext().GetTrials()[0].GetName() + " " + told.GetNext().GetTrials()[1].GetName(), "127.0.0.1", "", "OK", "", "r-2"},
		{"token " + infos[0].ID, "SetAttributes", trial, "127.0.0.1", "", "OK", "", "r-3"},
		{"token " + infos[1].ID, "WriteArtifact", trial, "127.0.0.1", "", "OK", "m.pt", ""},
		{"token " + infos[0].ID, "DeleteStudy", "studies/theirs", "127.0.0.1", "", "OK", "", ""},
	}
	var have []line
	for _, text := range lines[1:] {
		var l line
		if err := json.Unmarshal([]byte(text), &l); err != nil {
			t.Fatalf("%v: %s", err, text)
		}
		have = append(have, l)
	}
	if len(have) != len(want) {
		t.Fatalf("%d lines, want %d:\n%s", len(have), len(want), text)
	}
	for i := range want {
		if have[i] != want[i] {
			t.Errorf("line %d is %+v, want %+v", i, have[i], want[i])
		}
		if entry := "what=" + want[i].What; strings.Count(log.String(), entry+" ") < 1 {
			t.Errorf("the log has no %s:\n%s", entry, log.String())
		}
	}
}

// TestAuditFileRefused checks that a server without a writable audit file does not
// serve.
func TestAuditFileRefused(t *testing.T) {
	s, err := server.New(withStudies(t), server.Options{Address: "127.0.0.1:0", AuditFile: filepath.Join(t.TempDir(), "nothing", "audit")})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Serve(t.Context(), nil); err == nil || !strings.Contains(err.Error(), "audit") {
		t.Errorf("serving without the file: %v", err)
	}
}
