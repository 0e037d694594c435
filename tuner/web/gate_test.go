package web_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	pb "github.com/bkbtuner/bkb/proto/tuner/v1"
	"github.com/bkbtuner/bkb/tuner/server"
	"github.com/bkbtuner/bkb/tuner/web"
	"github.com/bkbtuner/bkb/tuner/wire/wiretest"
)

// metric is the value of a metric, of all its labels together.
func metric(t testing.TB, r *running, name string) (sum float64) {
	t.Helper()
	families, err := r.Registry().Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if base, labels, _ := strings.Cut(name, "{"); f.GetName() == base {
			for _, m := range f.GetMetric() {
				if strings.Contains(m.String(), labels) {
					sum += m.GetCounter().GetValue() + m.GetGauge().GetValue()
				}
			}
		}
	}
	return sum
}

const getMine = `{"name":"studies/mine"}`

// TestTokens checks that tokens and scopes hold over HTTP, and that each call counts once.
func TestTokens(t *testing.T) {
	path := tokenPath(t)
	reader := addToken(t, path, server.Scope{Role: server.RoleRead})
	worker := addToken(t, path, server.Scope{Role: server.RoleWorker, Studies: []string{"theirs"}})
	r := start(t, withStudies(t), server.Options{TokenFile: path}, loopback)
	none := r.call(t, "GetStudy", getMine)
	none.want(t, "no token", 401, 16, "DENIED")
	if none.header.Get("WWW-Authenticate") != "Bearer" || none.header.Get("Tuner-Version") != "" {
		t.Errorf("no token: %v", none.header)
	}
	r.call(t, "GetStudy", getMine, "Authorization", "Bearer nonsense").want(t, "a wrong token", 401, 16, "DENIED")
	r.call(t, "GetStudy", getMine, "Authorization", "Bearer \xe4").want(t, "a token in Latin-1", 401, 16, "DENIED")
	r.call(t, "GetStudy", getMine, "Authorization", reader, "Authorization", reader).want(t, "two tokens", 401, 16, "DENIED")
	r.call(t, "GetStudy", getMine, "Tuner-Admission", "1", "Grpc-Metadata-Tuner-Admission", "1").want(t, "an admission that the caller made up", 401, 16, "DENIED")
	if a := r.call(t, "GetStudy", getMine, "Authorization", reader); a.status != 200 {
		t.Errorf("a reader: %d %s", a.status, a.text)
	}
	r.call(t, "GetStudy", getMine, "Authorization", worker).want(t, "a worker of another study", 403, 7, "DENIED")
	r.call(t, "DeleteStudy", getMine, "Authorization", reader).want(t, "a reader that deletes", 403, 7, "DENIED")
	for name, want := range map[string]float64{
		`tuner_http_requests_total{"401"`:  5,
		`tuner_http_requests_total{"200"`:  1,
		`tuner_http_requests_total{"403"`:  2,
		`tuner_auth_failures_total{"none"`: 2,
	} {
		if got := metric(t, r, name); got != want {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
	if got := metric(t, r, "tuner_requests_total"); got != 8 {
		t.Errorf("8 calls were counted as %v", got)
	}
	open := start(t, withStudies(t), server.Options{}, loopback)
	if a := open.call(t, "GetStudy", getMine, "Authorization", "Bearer \xe4"); a.status != 200 {
		t.Errorf("a server without tokens reads one: %s", a.text)
	}
}

// TestRequestsOfOthers checks that a request id over HTTP belongs to the token that sent it
// first, also over gRPC, whose server both share.
func TestRequestsOfOthers(t *testing.T) {
	path := tokenPath(t)
	a, b := addToken(t, path, server.Scope{Role: server.RoleWorker}), addToken(t, path, server.Scope{Role: server.RoleWorker})
	r := start(t, withStudies(t), server.Options{TokenFile: path}, loopback)
	const config = `"config":{"x":{"floatValue":0.5},"n":{"intValue":"1"}}`
	for method, body := range map[string]string{
		"Ask":          `{"parent":"studies/mine","requestId":"r1"}`,
		"EnqueueTrial": `{"parent":"studies/theirs","requestId":"r2",` + config + `}`,
		"AddTrials":    `{"parent":"studies/theirs","trials":[{"requestId":"r3","enqueue":true,` + config + `}]}`,
	} {
		first, again := r.call(t, method, body, "Authorization", a), r.call(t, method, body, "Authorization", a)
		if first.status != 200 || first.text != again.text {
			t.Errorf("%s: %s, and again %s", method, first.text, again.text)
		}
		other := r.call(t, method, body, "Authorization", b)
		other.want(t, method+" with the id of another", 400, 3, "INVALID")
		if wrong := fmt.Sprint(other.details("google.rpc.BadRequest")); !strings.Contains(wrong, "request_id") || !strings.Contains(wrong, "belongs to the token") {
			t.Errorf("%s: %s", method, other.text)
		}
	}
}

// TestGateBeforeBody checks that a caller without a token is refused before its body.
func TestGateBeforeBody(t *testing.T) {
	t.Parallel() // it waits more than it computes
	path := tokenPath(t)
	addToken(t, path, server.Scope{Role: server.RoleAdmin})
	r := start(t, withStudies(t), server.Options{TokenFile: path, Limits: server.Limits{CallTimeout: time.Hour}}, loopback)
	for name, test := range map[string]struct{ target, header, want string }{
		"no token, waits to be told to continue": {"POST /tuner.v1.Tuner/AddTrials", "Content-Length: 1000000\r\nExpect: 100-continue", "401 Unauthorized"},
		"no token":                               {"POST /tuner.v1.Tuner/AddTrials", "Content-Length: 1000", "401 Unauthorized"},
		"no token, chunks":                       {"POST /tuner.v1.Tuner/AddTrials", "Transfer-Encoding: chunked", "401 Unauthorized"},
		"no path":                                {"POST /nothing", "Content-Length: 1000", "404 Not Found"},
		"another site":                           {"POST /tuner.v1.Tuner/AddTrials", "Content-Length: 1000\r\nOrigin: https://example.com", "403 Forbidden"},
		"health":                                 {"GET /healthz", "Content-Length: 1000", "200 OK"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, err := net.Dial("tcp", r.http)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			_ = c.SetDeadline(time.Now().Add(time.Minute)) // much less than the time for a call
			fmt.Fprintf(c, "%s HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\n%s\r\n\r\n", test.target, r.http, test.header)
			line, err := bufio.NewReader(c).ReadString('\n')
			if err != nil || line != "HTTP/1.1 "+test.want+"\r\n" {
				t.Errorf("%q, %v", line, err)
			}
		})
	}
}

// TestCallersAddress checks that failed logins count for the caller's address, and that the
// audit has this address.
func TestCallersAddress(t *testing.T) {
	other := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}
	if l, err := net.Listen("tcp", "127.0.0.2:0"); err != nil {
		t.Skip("this system has no address 127.0.0.2:", err)
	} else {
		l.Close()
	}
	path, audit := tokenPath(t), filepath.Join(t.TempDir(), "audit")
	admin := addToken(t, path, server.Scope{Role: server.RoleAdmin})
	r := start(t, withStudies(t), server.Options{TokenFile: path, AuditFile: audit, Limits: server.Limits{AuthFailureRate: 0.001}}, loopback)
	r.call(t, "GetStudy", getMine).want(t, "the first failure", 401, 16, "DENIED")
	limited := r.call(t, "GetStudy", getMine)
	limited.want(t, "the second", 429, 8, "EXHAUSTED")
	if limited.header.Get("Retry-After") == "" || len(limited.details("google.rpc.RetryInfo")) != 1 {
		t.Errorf("no time to try again: %v %s", limited.header, limited.text)
	}
	if a := r.call(t, "GetStudy", getMine, "Authorization", admin); a.status != 200 {
		t.Errorf("a caller with a token at that address: %s", a.text)
	}
	r.client.Transport.(*http.Transport).CloseIdleConnections()
	r.client.Transport.(*http.Transport).DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
		return other.DialContext(ctx, "tcp", r.http)
	}
	r.call(t, "GetStudy", getMine).want(t, "another address", 401, 16, "DENIED")
	if a := r.call(t, "PauseStudy", getMine, "Authorization", admin); a.status != 200 {
		t.Fatal(a.text)
	}
	r.stop()
	if text, err := os.ReadFile(audit); err != nil || !strings.Contains(string(text), `"what":"PauseStudy","on":"studies/mine","from":"127.0.0.2"`) {
		t.Errorf("the audit: %v %s", err, text)
	}
}

// TestForgedAdmission sends the number of an admin's call over HTTP with calls over gRPC.
func TestForgedAdmission(t *testing.T) {
	path := tokenPath(t)
	admin := addToken(t, path, server.Scope{Role: server.RoleAdmin})
	r := start(t, withStudies(t), server.Options{TokenFile: path}, loopback)
	watch := r.watch(t, `{"parent":"studies/mine"}`, "Authorization", admin)
	watch.line(t)
	conn, err := grpc.NewClient(r.grpc, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for n := range 4 {
		ctx := metadata.AppendToOutgoingContext(t.Context(), "tuner-admission", fmt.Sprint(n))
		if _, err := pb.NewTunerClient(conn).GetStudy(ctx, &pb.GetStudyRequest{Name: "studies/mine"}); status.Code(err) != codes.Unauthenticated {
			t.Errorf("with the number %d: %v", n, err)
		}
	}
}

// TestOneLimit checks that calls over gRPC and HTTP count towards the same limit.
func TestOneLimit(t *testing.T) {
	path := tokenPath(t)
	admin := addToken(t, path, server.Scope{Role: server.RoleAdmin})
	r := start(t, withStudies(t), server.Options{TokenFile: path, Limits: server.Limits{Rate: 0.001, Burst: 3}}, loopback)
	conn, err := grpc.NewClient(r.grpc, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	ctx := metadata.AppendToOutgoingContext(t.Context(), "authorization", admin)
	for range 2 {
		if _, err := pb.NewTunerClient(conn).GetStudy(ctx, &pb.GetStudyRequest{Name: "studies/mine"}); err != nil {
			t.Fatal(err)
		}
	}
	if a := r.call(t, "GetStudy", getMine, "Authorization", admin); a.status != 200 {
		t.Errorf("the third call: %s", a.text)
	}
	r.call(t, "GetStudy", getMine, "Authorization", admin).want(t, "the fourth", 429, 8, "EXHAUSTED")
}

// TestConnections checks the limits on connections over HTTP. A connection on which a call
// showed a token is not closed for others.
func TestConnections(t *testing.T) {
	path := tokenPath(t)
	admin := addToken(t, path, server.Scope{Role: server.RoleAdmin})
	r := start(t, withStudies(t), server.Options{TokenFile: path, Limits: server.Limits{MaxConnections: 4, MaxStrangers: 2}}, loopback)
	if a := r.call(t, "GetStudy", getMine, "Authorization", admin); a.status != 200 {
		t.Fatal(a.text)
	}
	var strangers []net.Conn
	for range 6 {
		c, err := net.Dial("tcp", r.http)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		strangers = append(strangers, c)
	}
	for deadline := time.Now().Add(time.Minute); metric(t, r, "tuner_connections") != 3; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%v connections", metric(t, r, "tuner_connections"))
		}
	}
	// The connection of the call is one of them still.
	reused := false
	q := r.request(t, "GetStudy", getMine, "Authorization", admin)
	if a := r.do(t, q.WithContext(traced(q.Context(), &reused))); a.status != 200 || !reused {
		t.Errorf("the known connection was closed: %v %s", reused, a.text)
	}
	if n := metric(t, r, "tuner_limited_total"); n < 4 {
		t.Errorf("%v of %d strangers were refused", n, len(strangers))
	}
}

// TestManyCalls checks that the limit on calls of one connection does not limit all callers
// together.
func TestManyCalls(t *testing.T) {
	r := start(t, withStudies(t), server.Options{Limits: server.Limits{MaxStreams: 2}}, loopback)
	var watches []*watching
	for range 8 {
		w := r.watch(t, `{"parent":"studies/mine"}`)
		w.line(t)
		watches = append(watches, w)
	}
	if n := metric(t, r, "tuner_watches"); n != 8 {
		t.Errorf("%v watches are open", n)
	}
	for _, w := range watches {
		w.close()
	}
	for deadline := time.Now().Add(time.Minute); metric(t, r, "tuner_watches") != 0; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("watches go on after their callers left")
		}
	}
}

// TestExposure checks that the face listens only where gRPC may.
func TestExposure(t *testing.T) {
	ours := wiretest.NewAuthority(t)
	pair := ours.Issue(t, "server", "127.0.0.1")
	path := tokenPath(t)
	addToken(t, path, server.Scope{Role: server.RoleAdmin})
	for name, c := range map[string]struct {
		options server.Options
		ok      bool
	}{
		"neither":    {server.Options{}, false},
		"tokens":     {server.Options{TokenFile: path}, false},
		"TLS":        {server.Options{CertFile: pair.CertFile, KeyFile: pair.KeyFile}, false},
		"both":       {server.Options{CertFile: pair.CertFile, KeyFile: pair.KeyFile, TokenFile: path}, true},
		"by request": {server.Options{InsecureAllowRemote: true}, true},
	} {
		c.options.Address = "127.0.0.1:0"
		for where, ok := range map[string]bool{"0.0.0.0:0": c.ok, "127.0.0.1:0": true} {
			opened, err := server.Listen(c.options, where)
			if (err == nil) != ok || ok && len(opened.Further) != 1 {
				t.Errorf("%s on %s: Listen returns %+v and %v", name, where, opened, err)
			}
			if opened != nil {
				opened.Close()
			}
		}
		s, err := server.New(withStudies(t), c.options)
		if err != nil {
			t.Fatal(err)
		}
		l, err := s.ListenAt("0.0.0.0:0")
		if (err == nil) != c.ok {
			t.Errorf("%s: ListenAt says %v", name, err)
		}
		if l != nil {
			l.Close()
		}
	}
	// A listener from elsewhere is refused too.
	r := start(t, withStudies(t), server.Options{}, loopback)
	pipe, err := r.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "0.0.0.0:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if _, err := pipe.Guard(l); err == nil {
		t.Error("a listener that others can reach was taken")
	}
}

// secure is a caller over TLS.
func secure(t testing.TB, r *running, a *wiretest.Authority, change func(*tls.Config)) *running {
	t.Helper()
	pem, err := os.ReadFile(a.CAFile)
	if err != nil {
		t.Fatal(err)
	}
	config := &tls.Config{RootCAs: x509.NewCertPool()}
	config.RootCAs.AppendCertsFromPEM(pem)
	if change != nil {
		change(config)
	}
	transport := &http.Transport{TLSClientConfig: config}
	t.Cleanup(transport.CloseIdleConnections)
	return &running{Server: r.Server, http: r.http, client: &http.Client{Transport: transport}}
}

func bearing(t testing.TB, p wiretest.Pair) func(*tls.Config) {
	t.Helper()
	pair, err := tls.LoadX509KeyPair(p.CertFile, p.KeyFile)
	if err != nil {
		t.Fatal(err)
	}
	return func(c *tls.Config) {
		c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &pair, nil }
	}
}

// TestTLS checks that the face has the certificate of the server, also after a change. A
// caller's certificate says who it is.
func TestTLS(t *testing.T) {
	ours, others := wiretest.NewAuthority(t), wiretest.NewAuthority(t)
	pair := ours.Issue(t, "server", "127.0.0.1")
	path := tokenPath(t)
	admin := addToken(t, path, server.Scope{Role: server.RoleAdmin})
	r := start(t, withStudies(t), server.Options{
		CertFile: pair.CertFile, KeyFile: pair.KeyFile, ClientCAFile: ours.CAFile, TokenFile: path,
		ClientScopes: map[string]server.Scope{"reader": {Role: server.RoleRead}, "worker": {Role: server.RoleWorker, Studies: []string{"theirs"}}},
	}, loopback)
	call := func(as *running, method string, headers ...string) (answer, error) {
		q := as.request(t, method, getMine, headers...)
		q.URL.Scheme = "https"
		res, err := as.client.Do(q)
		if err != nil {
			return answer{}, err
		}
		defer res.Body.Close()
		text, err := io.ReadAll(res.Body)
		return answer{status: res.StatusCode, text: string(text)}, err
	}
	for _, c := range []struct {
		name   string
		trust  *wiretest.Authority
		change func(*tls.Config)
		method string
		token  string
		want   int // 0: the handshake fails
	}{
		{"a token", ours, nil, "GetStudy", admin, 200},
		{"nothing", ours, nil, "GetStudy", "", 401},
		{"a reader's certificate", ours, bearing(t, ours.Issue(t, "reader", "reader")), "GetStudy", "", 200},
		{"a reader's certificate for a change", ours, bearing(t, ours.Issue(t, "reader", "reader")), "PauseStudy", "", 403},
		{"a worker of another study", ours, bearing(t, ours.Issue(t, "worker", "worker")), "GetStudy", "", 403},
		{"a name without a scope", ours, bearing(t, ours.Issue(t, "x", "x")), "GetStudy", "", 401},
		{"a certificate of others", ours, bearing(t, others.Issue(t, "reader", "reader")), "GetStudy", "", 0},
		{"the system's roots", others, nil, "GetStudy", admin, 0},
		{"TLS 1.2", ours, func(c *tls.Config) { c.MaxVersion = tls.VersionTLS12 }, "GetStudy", admin, 0},
	} {
		a, err := call(secure(t, r, c.trust, c.change), c.method, "Authorization", c.token)
		if a.status != c.want || (err != nil) != (c.want == 0) {
			t.Errorf("%s: %d, %v: %s; want %d", c.name, a.status, err, a.text, c.want)
		}
	}
	if a := r.call(t, "GetStudy", getMine, "Authorization", admin); a.status != 400 {
		t.Errorf("without TLS: %d %s", a.status, a.text)
	}
	next := others.Issue(t, "server", "127.0.0.1")
	for from, to := range map[string]string{next.CertFile: pair.CertFile, next.KeyFile: pair.KeyFile} {
		if err := os.Rename(from, to); err != nil {
			t.Fatal(err)
		}
	}
	if a, err := call(secure(t, r, others, nil), "GetStudy", "Authorization", admin); err != nil || a.status != 200 {
		t.Errorf("with the new certificate: %v %s", err, a.text)
	}
	if _, err := call(secure(t, r, ours, nil), "GetStudy", "Authorization", admin); err == nil {
		t.Error("the old certificate is still shown")
	}
}

// TestSites sends requests as browsers send them for pages of other sites.
func TestSites(t *testing.T) {
	socket := "unix:" + filepath.Join(t.TempDir(), "s")
	for _, address := range []string{loopback, socket} {
		r := start(t, withStudies(t), server.Options{}, address)
		onLoopback := address == loopback
		host := r.request(t, "x", "").Host
		for _, c := range []struct {
			name    string
			headers []string
			ok      bool
		}{
			{"no browser", nil, true},
			{"its own page", []string{"Origin", "http://" + host, "Sec-Fetch-Site", "same-origin"}, true},
			{"its own page, an old browser", []string{"Origin", "http://" + host}, true},
			{"another site", []string{"Origin", "https://evil.example", "Sec-Fetch-Site", "cross-site"}, false},
			{"another site, an old browser", []string{"Origin", "https://evil.example"}, false},
			{"another site without an origin", []string{"Sec-Fetch-Site", "cross-site"}, false},
			{"another port", []string{"Origin", "http://localhost:1"}, false},
			{"a hidden origin", []string{"Origin", "null"}, false},
			{"a name that resolves to 127.0.0.1", []string{"Host", "evil.example"}, !onLoopback},
			{"such a name with its page", []string{"Host", "evil.example", "Origin", "http://evil.example", "Sec-Fetch-Site", "same-origin"}, !onLoopback},
			{"a name that begins like localhost", []string{"Host", "localhost.evil.example"}, !onLoopback},
			{"a name that ends like localhost", []string{"Host", "evil-localhost"}, !onLoopback},
			{"a name with an address in it", []string{"Host", "127.0.0.1.evil.example"}, !onLoopback},
			{"localhost", []string{"Host", "localhost:80"}, true},
			{"LOCALHOST without a port", []string{"Host", "LOCALHOST"}, true},
			{"an address", []string{"Host", "127.0.0.1"}, true},
			{"an IPv6 address", []string{"Host", "[::1]:80"}, true},
			{"an IPv6 address without a port", []string{"Host", "[::1]"}, true},
		} {
			a := r.call(t, "GetStudy", getMine, c.headers...)
			if c.ok && a.status != 200 {
				t.Errorf("%s: %s: %d %s", address, c.name, a.status, a.text)
			}
			if !c.ok {
				status := 403
				if slices.Contains(c.headers, "Host") {
					status = 421
				}
				a.want(t, c.name, status, 7, "DENIED")
			}
			if a.header.Get("Access-Control-Allow-Origin") != "" || a.header.Get("X-Content-Type-Options") != "nosniff" {
				t.Errorf("%s: %s: %v", address, c.name, a.header)
			}
		}
		// The rule about Host holds for probes too.
		q := r.request(t, "x", "", "Host", "evil.example")
		q.Method, q.URL.Path = "GET", "/healthz"
		if a := r.do(t, q); (a.status == 200) == onLoopback {
			t.Errorf("%s: a probe for another host: %d", address, a.status)
		}
	}
}

// TestStop checks that a server that stops answers probes with NOT_SERVING, finishes calls
// under way, and refuses later ones with UNAVAILABLE.
func TestStop(t *testing.T) {
	t.Parallel() // it waits more than it computes
	g := newGated(withStudies(t))
	var log syncBuffer
	r := start(t, g, server.Options{DrainDelay: 300 * time.Millisecond, Logger: slog.New(slog.NewTextHandler(&log, nil))}, loopback)
	probe := func() answer {
		q := r.request(t, "x", "")
		q.Method, q.URL.Path = "GET", "/readyz"
		return r.do(t, q)
	}
	if a := probe(); a.status != 200 || a.text != "SERVING\n" {
		t.Errorf("before: %d %q", a.status, a.text)
	}
	watch := r.watch(t, `{"parent":"studies/theirs"}`)
	watch.line(t)
	underWay := make(chan answer, 1)
	go func() { underWay <- r.call(t, "GetStudy", getMine) }()
	<-g.entered
	var stopped sync.WaitGroup
	stopped.Go(r.stop)
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		if a := probe(); a.status == 503 && a.text == "NOT_SERVING\n" {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the probe goes on saying that the server serves")
		}
	}
	if text := watch.rest(t); !strings.Contains(text, `"error":`) || !strings.Contains(text, `UNAVAILABLE`) {
		t.Errorf("the end of the watch: %s", text)
	}
	// The pipe takes no more calls, and the face still answers.
	r.call(t, "ListStudies", `{}`).want(t, "a call too late", 503, 14, "UNAVAILABLE")
	close(g.leave)
	if a := <-underWay; a.status != 200 {
		t.Errorf("the call under way: %d %s", a.status, a.text)
	}
	stopped.Wait()
	if !strings.Contains(log.String(), "serving HTTP") {
		t.Error("the log does not have the address")
	}
}

// TestPipeTooLate makes a face of a server that has served.
func TestPipeTooLate(t *testing.T) {
	s, err := server.New(withStudies(t), server.Options{Address: loopback, DrainDelay: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Serve(ctx, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := web.New(s, web.Options{}); err == nil {
		t.Error("a face was made of a server that has served")
	}
}
