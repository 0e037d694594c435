package web_test

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	pb "github.com/bkbtuner/bkb/proto/tuner/v1"
	"github.com/bkbtuner/bkb/tuner/memlimit"
	"github.com/bkbtuner/bkb/tuner/server"
	"github.com/bkbtuner/bkb/tuner/web"
)

// TestCalls runs a trial from its creation to its result. It covers fields that are zero and
// thus left out, integers of 64 bits, and numbers that JSON does not have.
func TestCalls(t *testing.T) {
	r := start(t, withStudies(t), server.Options{}, loopback)
	must := func(method, body string) answer {
		t.Helper()
		a := r.call(t, method, body)
		if a.status != 200 || a.header.Get("Content-Type") != "application/json" || a.header.Get("Tuner-Version") != "v1.2.3" {
			t.Fatalf("%s: status %d, %v: %s", method, a.status, a.header, a.text)
		}
		return a
	}
	create := `{"studyId":"s","requestId":"c","spec":{"space":"{\"version\":1,\"parameters\":{\"n\":{\"type\":\"int\",\"low\":0,\"high\":9007199254740993}}}",` +
		`"objectives":[{"name":"loss","direction":"DIRECTION_MINIMIZE"}],"lease":"90s","seed":"18446744073709551615"}}`
	first, again := must("CreateStudy", create), must("CreateStudy", create)
	if first.body["uid"] != again.body["uid"] || first.body["spec"].(map[string]any)["seed"] != "18446744073709551615" {
		t.Errorf("the same request twice: %s and %s", first.text, again.text)
	}
	// Names as in the .proto, and numbers of 64 bits as numbers, are read too.
	must("EnqueueTrial", `{"parent":"studies/s","request_id":"q","config":{"n":{"int_value":9007199254740993}}}`)
	asked := must("Ask", `{"parent":"studies/s","worker":"w"}`)
	trial := asked.body["trials"].([]any)[0].(map[string]any)
	if _, has := trial["number"]; has || trial["name"] != "studies/s/trials/0" || trial["epoch"] != "1" {
		t.Errorf("trial 0: %v", trial)
	}
	if n := trial["config"].(map[string]any)["n"].(map[string]any)["intValue"]; n != "9007199254740993" {
		t.Errorf("2⁵³+1 came back as %v", n)
	}
	must("Report", `{"name":"studies/s/trials/0","epoch":"1","reports":[{"step":"0","values":{"loss":0.25}}]}`)
	must("Tell", `{"name":"studies/s/trials/0","epoch":1,"outcome":{"state":"TRIAL_STATE_COMPLETED","metrics":{"loss":{"values":["Infinity"]}}}}`)
	got := must("GetTrial", `{"name":"studies/s/trials/0"}`)
	if v := fmt.Sprint(got.body["outcome"].(map[string]any)["metrics"]); v != "map[loss:map[values:[Infinity]]]" {
		t.Errorf("+Inf came back as %s", v)
	}
	must("EnqueueTrial", `{"parent":"studies/s","requestId":"z","config":{"n":{"intValue":"0"}}}`)
	zero := must("GetTrial", `{"name":"studies/s/trials/1"}`)
	if n := fmt.Sprint(zero.body["config"]); n != "map[n:map[intValue:0]]" {
		t.Errorf("a parameter that is 0: %s", n)
	}
	told := must("Tell", `{"name":"studies/mine/trials/0","outcome":{"state":"TRIAL_STATE_COMPLETED","metrics":{"loss":{"values":["NaN"]}}}}`)
	if text := fmt.Sprint(told.body["trial"]); !strings.Contains(text, "FAIL_REASON_NAN") {
		t.Errorf("NaN: %s", told.text)
	}
	if a := must("ListStudies", `{}`); len(a.body["studies"].([]any)) != 3 {
		t.Errorf("the list: %s", a.text)
	}
}

// TestEveryMethod checks that the face has all methods of the service.
func TestEveryMethod(t *testing.T) {
	t.Parallel() // it waits more than it computes
	r := start(t, withStudies(t), server.Options{}, loopback)
	var want []string
	for _, m := range pb.Tuner_ServiceDesc.Methods {
		want = append(want, m.MethodName)
	}
	for _, m := range pb.Tuner_ServiceDesc.Streams {
		want = append(want, m.StreamName)
	}
	for _, name := range want {
		if name == "WatchStudies" { // needs no parent, and so does not end
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			res, err := r.client.Do(r.request(t, name, `{}`).WithContext(ctx))
			if err != nil || res.StatusCode != 200 {
				t.Errorf("%s: %v, %v", name, res, err)
			}
			cancel()
			continue
		}
		if a := r.call(t, name, `{}`); a.status == 404 && a.body["code"] != 5.0 || a.status == 501 && len(a.details("google.rpc.ErrorInfo")) == 0 {
			t.Errorf("%s: %d %s", name, a.status, a.text)
		}
	}
}

// TestErrors checks errors of the service with their details, and refusals of the face,
// which have the same form.
func TestErrors(t *testing.T) {
	t.Parallel() // it waits more than it computes
	r := start(t, withStudies(t), server.Options{}, loopback)
	tell := func(loss string) string {
		return `{"name":"studies/mine/trials/0","outcome":{"state":"TRIAL_STATE_COMPLETED","metrics":{"loss":{"values":[` + loss + `]}}}}`
	}
	if a := r.call(t, "Tell", tell("1")); a.status != 200 {
		t.Fatal(a.text)
	}
	for _, c := range []struct {
		name, method, body string
		headers            []string
		status             int
		code               codes.Code
		reason             string
	}{
		{"no such study", "GetStudy", `{"name":"studies/none"}`, nil, 404, codes.NotFound, "NOT_FOUND"},
		{"a study that exists", "CreateStudy", `{"studyId":"mine","spec":{"space":"x: {type: float, low: 0, high: 1}","objectives":[{"name":"loss","direction":1}]}}`, nil, 409, codes.AlreadyExists, "ALREADY_EXISTS"},
		{"another outcome", "Tell", tell("2"), nil, 400, codes.FailedPrecondition, "ALREADY_TOLD"},
		{"an unknown method", "Nothing", `{}`, nil, 501, codes.Unimplemented, ""},
		{"no JSON", "GetStudy", `name=x`, nil, 400, codes.InvalidArgument, "INVALID"},
		{"nothing", "GetStudy", ``, nil, 400, codes.InvalidArgument, "INVALID"},
		{"an unknown field", "Ask", `{"parent":"studies/mine","requestid":"a"}`, nil, 400, codes.InvalidArgument, "INVALID"},
		{"another type", "GetStudy", `{"name":7}`, nil, 400, codes.InvalidArgument, "INVALID"},
		{"text that is not UTF-8", "GetStudy", "{\"name\":\"\xff\"}", nil, 400, codes.InvalidArgument, "INVALID"},
		{"two objects", "GetStudy", `{}{}`, nil, 400, codes.InvalidArgument, "INVALID"},
		{"a form", "GetStudy", `{}`, []string{"Content-Type", "", "Content-Type", "application/x-www-form-urlencoded"}, 415, codes.InvalidArgument, "INVALID"},
		{"plain text", "GetStudy", `{}`, []string{"Content-Type", "", "Content-Type", "text/plain"}, 415, codes.InvalidArgument, "INVALID"},
		{"no content type", "GetStudy", `{}`, []string{"Content-Type", ""}, 415, codes.InvalidArgument, "INVALID"},
		{"JSON and more", "GetStudy", `{}`, []string{"Content-Type", "", "Content-Type", "application/json+x"}, 415, codes.InvalidArgument, "INVALID"},
		{"another charset", "GetStudy", `{}`, []string{"Content-Type", "", "Content-Type", "application/json; charset=latin1"}, 415, codes.InvalidArgument, "INVALID"},
		{"a compressed body", "GetStudy", `{}`, []string{"Content-Encoding", "gzip"}, 415, codes.InvalidArgument, "INVALID"},
	} {
		a := r.call(t, c.method, c.body, c.headers...)
		a.want(t, c.name, c.status, float64(c.code), c.reason)
	}
	if a := r.call(t, "GetStudy", `{"name":"studies/mine"}`, "Content-Type", "", "Content-Type", "application/json; charset=UTF-8"); a.status != 200 {
		t.Errorf("with a charset: %d %s", a.status, a.text)
	}
	stored := r.call(t, "Tell", tell("2")).details("tuner.v1.Outcome")
	if len(stored) != 1 || fmt.Sprint(stored[0]["metrics"]) != "map[loss:map[values:[1]]]" {
		t.Errorf("the stored outcome: %v", stored)
	}
	bad := r.call(t, "EnqueueTrial", `{"parent":"studies/mine","config":{"x":{"floatValue":7},"n":{"intValue":1}}}`).details("google.rpc.BadRequest")
	if len(bad) != 1 || !strings.Contains(fmt.Sprint(bad[0]["fieldViolations"]), "x") {
		t.Errorf("the violations: %v", bad)
	}
	for path, want := range map[string][2]int{"GET /tuner.v1.Tuner/GetStudy": {405, 12}, "GET /nothing": {404, 12}, "POST /tuner.v1.Tuner/A/B": {404, 12}, "POST /healthz": {404, 12}, "OPTIONS /tuner.v1.Tuner/GetStudy": {405, 12}} {
		method, path, _ := strings.Cut(path, " ")
		q := r.request(t, "x", "")
		q.Method, q.URL.Path = method, path
		a := r.do(t, q)
		a.want(t, method+" "+path, want[0], float64(want[1]), "UNSUPPORTED")
		if (a.header.Get("Allow") == "POST") != (want[0] == 405) || a.header.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%s %s: %v", method, path, a.header)
		}
	}
}

// TestStatuses checks that each code of an error has a status that is no success.
func TestStatuses(t *testing.T) {
	table := web.HTTPStatus()
	for c := codes.OK; c <= codes.Unauthenticated; c++ {
		if status, ok := table[c]; !ok || (status < 300) != (c == codes.OK) {
			t.Errorf("%s: %d", c, status)
		}
	}
}

// TestBodyLimit sends a body of the largest size, and one that is a byte longer.
func TestBodyLimit(t *testing.T) {
	r := start(t, withStudies(t), server.Options{Limits: server.Limits{MaxRecvBytes: 1000}}, loopback)
	body := func(size int) string {
		text := `{"name":"studies/mine"}`
		return text + strings.Repeat(" ", size-len(text))
	}
	if a := r.call(t, "GetStudy", body(1000)); a.status != 200 {
		t.Errorf("1,000 bytes: %d %s", a.status, a.text)
	}
	a := r.call(t, "GetStudy", body(1001))
	a.want(t, "1,001 bytes", 413, float64(codes.ResourceExhausted), "EXHAUSTED")
	if !strings.Contains(a.text, "1000 bytes") || a.header.Get("Retry-After") != "" {
		t.Errorf("1,001 bytes: %s", a.text)
	}
	chunked := r.request(t, "GetStudy", body(1001))
	chunked.ContentLength = -1
	r.do(t, chunked).want(t, "1,001 bytes in chunks", 413, float64(codes.ResourceExhausted), "EXHAUSTED")
}

// TestBodyNeedsMemory refuses large bodies while memory is short. Small ones pass.
func TestBodyNeedsMemory(t *testing.T) {
	r := start(t, withStudies(t), server.Options{Memory: memlimit.New(1 << 20)}, loopback) // less than a process needs
	text := `{"name":"studies/mine"}`
	a := r.call(t, "GetStudy", text+strings.Repeat(" ", 5000))
	a.want(t, "large body", 429, float64(codes.ResourceExhausted), "EXHAUSTED")
	if a.header.Get("Retry-After") == "" || !strings.Contains(a.text, "--max-memory") {
		t.Errorf("large body: %v %s", a.header, a.text)
	}
	if a := r.call(t, "GetStudy", text); a.status != 200 {
		t.Errorf("small body: %d %s", a.status, a.text)
	}
}

// TestSlowBody checks that a call ends if its body does not arrive in time.
func TestSlowBody(t *testing.T) {
	r := start(t, withStudies(t), server.Options{Limits: server.Limits{CallTimeout: 50 * time.Millisecond}}, loopback)
	c, err := net.Dial("tcp", r.http)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	fmt.Fprintf(c, "POST /tuner.v1.Tuner/GetStudy HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{", r.http)
	_ = c.SetDeadline(time.Now().Add(time.Minute))
	text, err := io.ReadAll(c)
	if err != nil || !strings.HasPrefix(string(text), "HTTP/1.1 504 ") || !strings.Contains(string(text), "did not arrive within 50ms") {
		t.Errorf("%v: %s", err, text)
	}
}

// TestGzip checks that large answers are compressed for callers that accept gzip only.
func TestGzip(t *testing.T) {
	s := withStudies(t)
	r := start(t, s, server.Options{}, loopback)
	for i := range 50 {
		if a := r.call(t, "EnqueueTrial", fmt.Sprintf(`{"parent":"studies/mine","requestId":"%d","config":{"x":{"floatValue":0.5},"n":{"intValue":"%d"}}}`, i, i)); a.status != 200 {
			t.Fatal(a.text)
		}
	}
	for _, c := range []struct {
		method, accept string
		want           bool
	}{
		{"ListTrials", "gzip", true},
		{"ListTrials", "deflate, gzip;q=0.5", true},
		{"ListTrials", "identity", false},
		{"ListTrials", "gzip;q=0", false},
		{"GetStudy", "gzip", false}, // small
	} {
		body := `{"parent":"studies/mine"}`
		if c.method == "GetStudy" {
			body = `{"name":"studies/mine"}`
		}
		a := r.call(t, c.method, body, "Accept-Encoding", c.accept)
		if got := a.header.Get("Content-Encoding") == "gzip"; got != c.want {
			t.Errorf("%s with %q: compressed is %v, want %v", c.method, c.accept, got, c.want)
			continue
		}
		text := []byte(a.text)
		if c.want {
			z, err := gzip.NewReader(strings.NewReader(a.text))
			if err != nil {
				t.Fatal(err)
			}
			if text, err = io.ReadAll(z); err != nil {
				t.Fatal(err)
			}
		}
		var m map[string]any
		if err := json.Unmarshal(text, &m); err != nil || c.method == "ListTrials" && len(m["trials"].([]any)) != 51 {
			t.Errorf("%s with %q: %v: %.200s", c.method, c.accept, err, text)
		}
	}
}

// TestPanic checks that a panic of a handler is answered and counted, and that the server
// continues.
func TestPanic(t *testing.T) {
	r := start(t, withStudies(t), server.Options{}, loopback, web.Panicking("", "forced"))
	for range 2 {
		a := r.call(t, "GetStudy", `{"name":"studies/mine"}`)
		a.want(t, "a panic", 500, float64(codes.Internal), "INTERNAL")
		if strings.Contains(a.text, "forced") {
			t.Errorf("the caller reads of the panic: %s", a.text)
		}
	}
	if n := metric(t, r, "tuner_panics_total"); n != 2 {
		t.Errorf("%v panics were counted", n)
	}
}

// TestPanicMidway checks that an answer that a panic ends does not look complete.
func TestPanicMidway(t *testing.T) {
	r := start(t, withStudies(t), server.Options{}, loopback, web.Panicking(`{"name":`, "forced"))
	a, err := r.client.Do(r.request(t, "GetStudy", `{"name":"studies/mine"}`))
	if err == nil {
		_, err = io.ReadAll(a.Body)
		a.Body.Close()
	}
	if err == nil {
		t.Error("the answer looks complete")
	}
	if n := metric(t, r, "tuner_panics_total"); n != 1 {
		t.Errorf("%v panics were counted", n)
	}
}
