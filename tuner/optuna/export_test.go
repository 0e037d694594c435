package optuna

import (
	"context"
	"encoding/json"
	"math"
	"net"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"

	pb "github.com/bkbtuner/bkb/proto/optuna"
	"github.com/bkbtuner/bkb/store/memory"
)

// dial serves an implementation of the storage and returns a client.
func dial(t *testing.T, s pb.StorageServiceServer) pb.StorageServiceClient {
	t.Helper()
	l := bufconn.Listen(1 << 16)
	g := grpc.NewServer()
	pb.RegisterStorageServiceServer(g, s)
	done := make(chan error, 1)
	go func() { done <- g.Serve(l) }()
	conn, err := grpc.NewClient("passthrough:///pipe", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return l.DialContext(ctx) }))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		conn.Close()
		g.Stop()
		<-done
	})
	return pb.NewStorageServiceClient(conn)
}

// An export has the values that a script sees, and text for numbers that JSON lacks.
func TestExport(t *testing.T) {
	f := open(t, memory.New(), Options{})
	id := newStudy(t, f, "s")
	newTrial(t, f, id, &pb.Trial{
		State: pb.TrialState_COMPLETE, Values: []float64{math.Inf(-1)},
		Params:             map[string]float64{"x": 0.1, "n": 7, "c": 0, "d": 2},
		Distributions:      map[string]string{"x": uniform, "n": whole, "c": either, "d": `{"name": "CategoricalDistribution", "attributes": {"choices": [null, 2, true, "a"]}}`},
		UserAttributes:     map[string]string{"nan": `{"a": [NaN, "NaN, really"]}`},
		IntermediateValues: map[int64]float64{-1: math.NaN(), 3: 1e300},
	})
	c := dial(t, f)
	text, err := Export(t.Context(), Remote{c}, "")
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	trial, err := json.Marshal(got["trials"].([]any)[0])
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`"params":{"c":"NaN","d":true,"n":7,"x":0.1}`, `"values":["-Infinity"]`, `"state":"COMPLETE"`, `"user_attrs":{"nan":{"a":["NaN","NaN, really"]}}`,
		`"intermediate_values":{"-1":"NaN","3":1e+300}`, `"distributions":{"c":{"attributes":{"choices":["NaN","NaN, really",null]},"name":"CategoricalDistribution"}`,
	} {
		if !strings.Contains(string(trial), want) {
			t.Errorf("the trial is %s and lacks %s", trial, want)
		}
	}
	if got["study_name"] != "s" || got["import_id"] != `optuna storage 1 "s"` {
		t.Errorf("the study is %v", got)
	}
}

// Integers of more than 53 bits keep their digits, and equal choices their meaning.
func TestChoices(t *testing.T) {
	const big = `{"name": "CategoricalDistribution", "attributes": {"choices": [1152921504606846977, 1152921504606846976, 1]}}`
	if got, err := external(big, 0); err != nil || string(got) != "1152921504606846977" {
		t.Errorf("%s, %v", got, err)
	}
	d, err := ParseDistribution(big)
	if err != nil {
		t.Fatal(err)
	}
	for text, same := range map[string]bool{
		`[1152921504606846977, 1152921504606846976, 1.0]`: true,
		`[1152921504606846976, 1152921504606846976, 1]`:   false,
		`[1152921504606846977, 1152921504606846976, "1"]`: false,
		`[1152921504606846977, 1152921504606846976]`:      false,
	} {
		other, err := ParseDistribution(`{"name": "CategoricalDistribution", "attributes": {"choices": ` + text + `}}`)
		if err != nil {
			t.Fatal(err)
		}
		if why := d.conflict(other); (why == "") != same {
			t.Errorf("%s: %q", text, why)
		}
	}
	if _, err := ParseDistribution(big + "{}"); err == nil {
		t.Error("a distribution with more text is read")
	}
}

// spoiled is a storage with a trial that no client can read.
type spoiled struct {
	pb.UnimplementedStorageServiceServer
	trial *pb.Trial
}

func (s spoiled) GetAllStudies(context.Context, *pb.GetAllStudiesRequest) (*pb.GetAllStudiesReply, error) {
	return &pb.GetAllStudiesReply{Studies: []*pb.Study{{StudyId: 1, StudyName: "s"}}}, nil
}

func (s spoiled) GetTrials(context.Context, *pb.GetTrialsRequest) (*pb.GetTrialsReply, error) {
	return &pb.GetTrialsReply{Trials: []*pb.Trial{s.trial}}, nil
}

func TestExportSpoiled(t *testing.T) {
	for want, trial := range map[string]*pb.Trial{
		`trial 4: parameter "c": `: {Number: 4, Params: map[string]float64{"c": 9}, Distributions: map[string]string{"c": either}},
		`trial 0: parameter "n": `: {Params: map[string]float64{"n": math.NaN()}, Distributions: map[string]string{"n": whole}},
		`trial 0: parameter "x": `: {Params: map[string]float64{"x": 1}},
	} {
		if text, err := Export(t.Context(), Remote{dial(t, spoiled{trial: trial})}, "s"); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s, %v, want %s", text, err, want)
		}
	}
	all := []*pb.Study{{StudyName: "a"}, {StudyName: ""}}
	for range 12 {
		all = append(all, &pb.Study{StudyName: "b"})
	}
	for _, c := range []struct {
		studies []*pb.Study
		name    string
		want    string
	}{
		{nil, "", "the storage has no studies"},
		{all, "", `the storage has several studies, so name one of "a", ""`},
		{all, "c", `the storage has no study "c", but "a", "", "b", "b", "b", "b", "b", "b", "b", "b", and 4 more`},
	} {
		if s, err := choose(c.studies, c.name); err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%v, %v, want %s", s, err, c.want)
		}
	}
}
