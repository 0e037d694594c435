package web_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/bkbtuner/bkb/store/memory"
	"github.com/bkbtuner/bkb/tuner/engine"
	"github.com/bkbtuner/bkb/tuner/server"
	"github.com/bkbtuner/bkb/tuner/space"
	"github.com/bkbtuner/bkb/tuner/study"
	"github.com/bkbtuner/bkb/tuner/web"
)

// get makes a request of a browser that looks at the page. Headers are pairs.
func (r *running) get(t testing.TB, path string, headers ...string) *http.Request {
	t.Helper()
	q := r.request(t, "x", "", append([]string{"Content-Type", ""}, headers...)...)
	q.Method, q.URL.Path = http.MethodGet, path
	q.Body, q.ContentLength = nil, 0
	if before, after, ok := strings.Cut(path, "?"); ok {
		q.URL.Path, q.URL.RawQuery = before, after
	}
	return q
}

// post makes a request for a change in the private API.
func (r *running) post(t testing.TB, path, body string, headers ...string) *http.Request {
	t.Helper()
	q := r.request(t, "x", body, headers...)
	q.URL.Path = path
	return q
}

// TestPageFiles checks that the document names its files by a path with a hash, and that
// browsers can keep these.
func TestPageFiles(t *testing.T) {
	r := start(t, withStudies(t), server.Options{}, loopback)
	for _, path := range []string{"/", "/studies/mine", "/studies/mine/trials/0"} {
		a := r.do(t, r.get(t, path))
		if a.status != 200 || a.header.Get("Content-Type") != "text/html; charset=utf-8" || a.header.Get("Cache-Control") != "no-cache" {
			t.Errorf("%s: %d %v", path, a.status, a.header)
		}
		for name, want := range map[string]string{
			"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer",
			"Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin",
		} {
			if a.header.Get(name) != want {
				t.Errorf("%s: %s is %q", path, name, a.header.Get(name))
			}
		}
		csp := a.header.Get("Content-Security-Policy")
		for _, want := range []string{"default-src 'none'", "script-src 'self'", "frame-ancestors 'none'", "require-trusted-types-for 'script'"} {
			if !strings.Contains(csp, want) || strings.Contains(csp, "unsafe") {
				t.Errorf("%s: the policy is %q", path, csp)
			}
		}
	}
	index := r.do(t, r.get(t, "/"))
	if a := r.do(t, r.get(t, "/", "If-None-Match", index.header.Get("ETag"))); a.status != 304 || a.text != "" {
		t.Errorf("the same document again: %d %q", a.status, a.text)
	}
	files := regexp.MustCompile(`"(/static/[0-9a-f]{16}/[^"]+)"`).FindAllStringSubmatch(index.text, -1)
	if len(files) != 3 {
		t.Fatalf("the document names %d files: %s", len(files), index.text)
	}
	for _, f := range files {
		a := r.do(t, r.get(t, f[1]))
		if a.status != 200 || !strings.Contains(a.header.Get("Cache-Control"), "immutable") || len(a.text) == 0 {
			t.Errorf("%s: %d %v", f[1], a.status, a.header)
		}
		if a := r.do(t, r.get(t, f[1], "If-None-Match", a.header.Get("ETag"))); a.status != 304 {
			t.Errorf("%s again: %d", f[1], a.status)
		}
	}
	other := regexp.MustCompile(`/static/[0-9a-f]{16}/`).ReplaceAllString(files[0][1], "/static/0123456789abcdef/")
	for _, path := range []string{other, "/static/", "/index.html", "/static/index.html"} {
		if a := r.do(t, r.get(t, path)); a.status != 404 {
			t.Errorf("%s: %d", path, a.status)
		}
	}
}

// TestVendor checks that files of other projects are those that vendor.sum lists, and that
// it lists all of them.
func TestVendor(t *testing.T) {
	text, err := os.ReadFile("testdata/vendor.sum")
	if err != nil {
		t.Fatal(err)
	}
	listed := []string{"vendor.sum"}
	for line := range strings.Lines(string(text)) {
		f := strings.Fields(line)
		if len(f) != 4 || f[0] != "file" {
			continue
		}
		data, err := os.ReadFile(filepath.Join("testdata", f[1]))
		if err != nil {
			t.Error(err)
			continue
		}
		if sum := sha256.Sum256(data); hex.EncodeToString(sum[:]) != f[2] {
			t.Errorf("%s has the checksum %x, but vendor.sum says %s", f[1], sum, f[2])
		}
		listed = append(listed, f[1])
	}
	entries, err := os.ReadDir("testdata")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if !slices.Contains(listed, e.Name()) {
			t.Errorf("testdata/%s is not in vendor.sum", e.Name())
		}
	}
	if len(listed) != 3 {
		t.Errorf("vendor.sum lists %v", listed)
	}
}

// TestNoMarkup checks that no script of ours makes code or markup from text. The policy
// refuses it as well, but only when a browser gets there.
func TestNoMarkup(t *testing.T) {
	scripts, err := filepath.Glob("static/*.js")
	if err != nil || len(scripts) < 10 {
		t.Fatal(scripts, err)
	}
	never := regexp.MustCompile(`innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|https?://`)
	for _, name := range scripts {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		text = bytes.ReplaceAll(text, []byte("http://www.w3.org/2000/svg"), nil)
		if found := never.Find(text); found != nil {
			t.Errorf("%s has %q", name, found)
		}
		if n := bytes.Count(text, []byte("\n")); n > 420 {
			t.Errorf("%s has %d lines; split it", name, n)
		}
	}
}

// sessionOf logs in and returns the header with the cookie.
func sessionOf(t testing.TB, r *running, token string) string {
	t.Helper()
	body, _ := json.Marshal(map[string]string{"token": token})
	a := r.do(t, r.post(t, "/api/login", string(body)))
	if a.status != 204 {
		t.Fatalf("login: %d %s", a.status, a.text)
	}
	cookie := a.header.Get("Set-Cookie")
	if !strings.Contains(cookie, "HttpOnly") || !strings.Contains(cookie, "SameSite=Strict") || !strings.Contains(cookie, "Path=/") || strings.Contains(cookie, token) {
		t.Errorf("the cookie is %q", cookie)
	}
	pair, _, _ := strings.Cut(cookie, ";")
	return pair
}

// TestRoutes checks for each route who may use it. The columns are a visitor without a
// session, a reader, a worker of another study, a worker of the study, and an admin.
func TestRoutes(t *testing.T) {
	routes := map[string][5]int{
		"GET /":                               {200, 200, 200, 200, 200},
		"GET /studies/mine":                   {200, 200, 200, 200, 200},
		"GET /studies/mine/trials/0":          {200, 200, 200, 200, 200},
		"GET /api/studies/mine/columns":       {401, 200, 403, 200, 200},
		"GET /api/studies/mine/events":        {401, 200, 403, 200, 200},
		"GET /new":                            {200, 200, 200, 200, 200},
		"GET /workers":                        {200, 200, 200, 200, 200},
		"GET /compare":                        {200, 200, 200, 200, 200},
		"POST /api/space":                     {401, 200, 200, 200, 200},
		"GET /api/methods":                    {401, 200, 200, 200, 200},
		"GET /api/backup":                     {401, 403, 403, 403, 200},
		"POST /api/logout":                    {204, 204, 204, 204, 204},
		"POST /tuner.v1.Tuner/GetStudy":       {401, 200, 403, 200, 200},
		"POST /tuner.v1.Tuner/ListStudies":    {401, 200, 403, 403, 200},
		"POST /tuner.v1.Tuner/PauseStudy":     {401, 403, 403, 403, 200},
		"POST /tuner.v1.Tuner/ExtendStudy":    {401, 403, 403, 403, 200},
		"POST /tuner.v1.Tuner/ResumeStudy":    {401, 403, 403, 403, 200},
		"POST /tuner.v1.Tuner/GetTrial":       {401, 200, 403, 200, 200},
		"GET /healthz":                        {200, 200, 200, 200, 200},
		"GET /readyz":                         {200, 200, 200, 200, 200},
		"GET /static/0123456789abcdef/app.js": {404, 404, 404, 404, 404},
		"GET /api/nothing":                    {404, 404, 404, 404, 404},
		"PUT /api/studies/mine/columns":       {404, 404, 404, 404, 404},
		"POST /api/studies/mine/columns":      {404, 404, 404, 404, 404},
		"GET /api/login":                      {404, 404, 404, 404, 404},
	}
	path := tokenPath(t)
	scopes := []server.Scope{{Role: server.RoleRead}, {Role: server.RoleWorker, Studies: []string{"theirs"}}, {Role: server.RoleWorker, Studies: []string{"mine"}}, {Role: server.RoleAdmin}}
	var tokens []string
	for _, s := range scopes {
		tokens = append(tokens, strings.TrimPrefix(addToken(t, path, s), "Bearer "))
	}
	closed := start(t, withStudies(t), server.Options{TokenFile: path, Limits: server.Limits{AuthFailureRate: 1000}}, loopback)
	open := start(t, withStudies(t), server.Options{}, loopback)
	tested := make(map[string]bool) // paths
	for route := range routes {
		_, path, _ := strings.Cut(route, " ")
		tested[path] = true
	}
	for _, series := range pageMetric(t, open, "tuner_ui_requests_total") { // all routes of the page have one
		route := strings.NewReplacer("{study}", "mine", "{number}", "0").Replace(series.labels["route"])
		if !tested[route] && route != "/static/{file}" {
			t.Errorf("no visitor tries %s", route)
		}
	}
	for route, want := range routes {
		method, path, _ := strings.Cut(route, " ")
		ask := func(r *running, cookie string) int {
			body := `{"name":"studies/mine"}`
			switch {
			case strings.HasSuffix(path, "ListStudies"):
				body = "{}"
			case strings.HasSuffix(path, "GetTrial"):
				body = `{"name":"studies/mine/trials/0"}`
			}
			q := r.post(t, path, body)
			q.Method = method
			if method == "GET" {
				q = r.get(t, path)
			}
			if cookie != "" {
				q.Header.Set("Cookie", cookie)
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			res, err := r.client.Do(q.WithContext(ctx))
			if err != nil {
				t.Fatal(route, err)
			}
			defer res.Body.Close()
			return res.StatusCode
		}
		for who := range want {
			cookie := ""
			if who > 0 {
				cookie = sessionOf(t, closed, tokens[who-1])
			}
			if got := ask(closed, cookie); got != want[who] {
				t.Errorf("%s, visitor %d: status %d, want %d", route, who, got, want[who])
			}
		}
		if got := ask(open, ""); got != want[4] {
			t.Errorf("%s, a server without tokens: status %d, want %d", route, got, want[4])
		}
	}
}

// TestSession follows a session from login to logout, and its token to its end.
func TestSession(t *testing.T) {
	path := tokenPath(t)
	admin := strings.TrimPrefix(addToken(t, path, server.Scope{Role: server.RoleAdmin}), "Bearer ")
	r := start(t, withStudies(t), server.Options{TokenFile: path}, loopback)
	for _, body := range []string{`{}`, `token`, `{"token":""}`, `{"token":7}`, `{"token":"` + strings.Repeat("x", 5000) + `"}`} {
		r.do(t, r.post(t, "/api/login", body)).want(t, "login with "+body[:min(len(body), 20)], 400, 3, "INVALID")
	}
	r.do(t, r.post(t, "/api/login", `{"token":"wrong"}`)).want(t, "a wrong token", 401, 16, "DENIED")
	r.do(t, r.post(t, "/api/login", `{"token":"`+admin+`"}`, "Content-Type", "", "Content-Type", "text/plain")).want(t, "login by a form", 415, 3, "INVALID")
	r.do(t, r.post(t, "/api/login", `{"token":"`+admin+`"}`, "Origin", "http://evil.example", "Sec-Fetch-Site", "cross-site")).want(t, "login from another site", 403, 7, "DENIED")
	cookie := sessionOf(t, r, admin)
	other := sessionOf(t, r, admin)
	if cookie == other {
		t.Error("two sessions have one id")
	}
	if a := r.call(t, "PauseStudy", getMine, "Cookie", cookie); a.status != 200 {
		t.Errorf("a call of the session: %d %s", a.status, a.text)
	}
	r.call(t, "PauseStudy", getMine, "Cookie", cookie, "Sec-Fetch-Site", "same-site", "Origin", "http://127.0.0.1:1").want(t, "the session by a page of another port", 403, 7, "DENIED")
	r.do(t, r.get(t, "/api/studies/mine/columns", "Cookie", cookie, "Sec-Fetch-Site", "same-site")).want(t, "columns for a page of another port", 403, 7, "DENIED")
	r.call(t, "GetStudy", getMine, "Cookie", cookie+"x").want(t, "a session that does not exist", 401, 16, "DENIED")
	if a := r.do(t, r.post(t, "/api/logout", "{}", "Cookie", cookie)); a.status != 204 || !strings.Contains(a.header.Get("Set-Cookie"), "Max-Age=0") {
		t.Errorf("logout: %d %v", a.status, a.header)
	}
	r.call(t, "GetStudy", getMine, "Cookie", cookie).want(t, "after the logout", 401, 16, "DENIED")
	if a := r.call(t, "GetStudy", getMine, "Cookie", other); a.status != 200 {
		t.Errorf("the other session: %d %s", a.status, a.text)
	}
	// A header is stronger than the cookie.
	r.call(t, "GetStudy", getMine, "Cookie", other, "Authorization", "Bearer nonsense").want(t, "a wrong token beside a session", 401, 16, "DENIED")
}

// TestManySessions checks that many logins with a token end only sessions of this token.
func TestManySessions(t *testing.T) {
	t.Parallel() // it waits more than it computes
	path := tokenPath(t)
	admin := strings.TrimPrefix(addToken(t, path, server.Scope{Role: server.RoleAdmin}), "Bearer ")
	reader := strings.TrimPrefix(addToken(t, path, server.Scope{Role: server.RoleRead}), "Bearer ")
	r := start(t, withStudies(t), server.Options{TokenFile: path, Limits: server.Limits{Rate: -1}}, loopback)
	status := func(cookie string) int {
		return r.do(t, r.post(t, "/tuner.v1.Tuner/ListStudies", `{}`, "Cookie", cookie)).status
	}
	kept := sessionOf(t, r, admin)
	var cookies []string
	for range 101 {
		r.client.CloseIdleConnections() // a connection may log in 10 times a second
		cookies = append(cookies, sessionOf(t, r, reader))
	}
	for _, c := range []struct {
		name, cookie string
		want         int
	}{{"the other token", kept, 200}, {"the first session", cookies[0], 401}, {"the second session", cookies[1], 200}, {"the last session", cookies[100], 200}} {
		if got := status(c.cookie); got != c.want {
			t.Errorf("%s: status %d, want %d", c.name, got, c.want)
		}
	}
}

// TestRevokedSession revokes the token of a session with an open stream of events.
func TestRevokedSession(t *testing.T) {
	t.Parallel() // it waits more than it computes
	path := tokenPath(t)
	token, entry, err := server.AddToken(path, server.Scope{Role: server.RoleRead}, "", time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	r := start(t, withStudies(t), server.Options{TokenFile: path}, loopback)
	cookie := sessionOf(t, r, token.Reveal())
	res, err := r.client.Do(r.get(t, "/api/studies/mine/events", "Cookie", cookie))
	if err != nil || res.StatusCode != 200 {
		t.Fatal(res, err)
	}
	defer res.Body.Close()
	if err := server.RevokeToken(path, entry.ID); err != nil {
		t.Fatal(err)
	}
	defer time.AfterFunc(time.Minute, func() {
		t.Error("the stream goes on")
		res.Body.Close()
	}).Stop()
	for scanner := bufio.NewScanner(res.Body); scanner.Scan(); {
	}
	r.call(t, "GetStudy", getMine, "Cookie", cookie).want(t, "the next call", 401, 16, "DENIED")
}

// TestLogNames checks that the log has the name of a login and the trace of a call.
func TestLogNames(t *testing.T) {
	path := tokenPath(t)
	var log syncBuffer
	admin := addToken(t, path, server.Scope{Role: server.RoleAdmin})
	worker := addToken(t, path, server.Scope{Role: server.RoleWorker, Studies: []string{"other"}})
	infos, err := server.ListTokens(path)
	if err != nil {
		t.Fatal(err)
	}
	r := start(t, withStudies(t), server.Options{TokenFile: path, Logger: slog.New(slog.NewTextHandler(&log, nil))}, loopback)
	for i, token := range []string{admin, worker} {
		sessionOf(t, r, strings.TrimPrefix(token, "Bearer "))
		if who := "token " + infos[i].ID; !strings.Contains(log.String(), `msg="login to the page" who="`+who+`"`) {
			t.Errorf("the log does not name %s:\n%s", who, log.String())
		}
	}
	r.call(t, "PauseStudy", getMine, "Authorization", admin, "Traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")
	if !strings.Contains(log.String(), "trace_id=4bf92f3577b34da6a3ce929d0e0e4736") || strings.Count(log.String(), "trace_id") != 1 {
		t.Errorf("the log has no trace id, or too many:\n%s", log.String())
	}
}

// TestKey checks that a face with a key refuses requests without it.
func TestKey(t *testing.T) {
	r := start(t, withStudies(t), server.Options{}, loopback, web.WithKey("secret"))
	r.call(t, "GetStudy", getMine).want(t, "a call without the key", 401, 16, "DENIED")
	r.call(t, "GetStudy", getMine, "Authorization", "Bearer secret").want(t, "the key as a token", 401, 16, "DENIED")
	r.do(t, r.get(t, "/api/studies/mine/columns")).want(t, "columns without the key", 401, 16, "DENIED")
	r.do(t, r.post(t, "/api/login", `{"token":"Secret"}`)).want(t, "another key", 401, 16, "DENIED")
	if a := r.do(t, r.get(t, "/")); a.status != 200 {
		t.Errorf("the document: %d", a.status)
	}
	cookie := sessionOf(t, r, "secret")
	if a := r.call(t, "GetStudy", getMine, "Cookie", cookie); a.status != 200 {
		t.Errorf("with the key: %d %s", a.status, a.text)
	}
}

// TestWithoutPage checks that a face without the page has the calls alone.
func TestWithoutPage(t *testing.T) {
	r := start(t, withStudies(t), server.Options{}, loopback, web.WithoutPage)
	for _, path := range []string{"/", "/studies/mine", "/api/studies/mine/columns"} {
		r.do(t, r.get(t, path)).want(t, path, 404, 12, "UNSUPPORTED")
	}
	if a := r.call(t, "GetStudy", getMine); a.status != 200 {
		t.Errorf("a call: %d %s", a.status, a.text)
	}
}

// TestEvents watches a study as the page does.
func TestEvents(t *testing.T) {
	t.Parallel() // it waits more than it computes
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	service := engine.Open(memory.New(), engine.Options{})
	if _, err := service.CreateStudy(ctx, "mine", study.Create{Spec: spec(t)}); err != nil {
		t.Fatal(err)
	}
	if _, err := service.Ask(ctx, "mine", study.Ask{Worker: "w"}); err != nil {
		t.Fatal(err)
	}
	defer service.Close()
	r := start(t, service, server.Options{}, loopback)
	defer r.stop()
	r.do(t, r.get(t, "/api/studies/none/events")).want(t, "no such study", 404, 5, "NOT_FOUND")
	r.do(t, r.get(t, "/api/studies/mine/events?after=x")).want(t, "no position", 400, 3, "INVALID")
	r.do(t, r.get(t, "/api/studies/mine/events?uid=x")).want(t, "no uid", 400, 3, "INVALID")
	res, err := r.client.Do(r.get(t, "/api/studies/mine/events?after=2").WithContext(ctx))
	if err != nil || res.StatusCode != 200 || res.Header.Get("Content-Type") != "text/event-stream" || res.Header.Get("Content-Encoding") != "" {
		t.Fatal(res, err)
	}
	defer res.Body.Close()
	if a := r.call(t, "Report", `{"name":"studies/mine/trials/0","epoch":"1","reports":[{"step":"3","values":{"loss":0.5}},{"step":"4","values":{"loss":"NaN"}}]}`); a.status != 200 {
		t.Fatal(a.text)
	}
	if a := r.call(t, "Tell", `{"name":"studies/mine/trials/0","outcome":{"state":"TRIAL_STATE_COMPLETED","metrics":{"loss":{"values":[1]}}}}`); a.status != 200 {
		t.Fatal(a.text)
	}
	// news reads events until one has a position, and returns the study of that event.
	news := func(from io.Reader, want uint64) (m struct {
		Name, Position, State string
		Completed             string
	},
	) {
		t.Helper()
		id := ""
		for scanner := bufio.NewScanner(from); scanner.Scan(); {
			if after, ok := strings.CutPrefix(scanner.Text(), "id: "); ok {
				id = after
			}
			data, ok := strings.CutPrefix(scanner.Text(), "data: ")
			if !ok {
				continue
			}
			if err := json.Unmarshal([]byte(data), &m); err != nil || m.Position != id {
				t.Fatalf("%s: %v, id %s", data, err, id)
			}
			if id == fmt.Sprint(want) {
				return m
			}
		}
		t.Fatalf("the stream ended before position %d", want)
		return m
	}
	at := func() uint64 {
		v, err := service.Study(ctx, "mine")
		if err != nil {
			t.Fatal(err)
		}
		return uint64(v.Position)
	}
	told := at()
	if m := news(res.Body, told); m.Name != "studies/mine" || m.Completed != "1" {
		t.Errorf("after the tell: %+v", m)
	}
	// The page has another study, which had the name before and as many events.
	other, err := r.client.Do(r.get(t, fmt.Sprintf("/api/studies/mine/events?after=%d&uid=987654321", told)).WithContext(ctx))
	if err != nil {
		t.Fatal(err)
	}
	defer other.Body.Close()
	if m := news(other.Body, told); m.Completed != "1" {
		t.Errorf("to a page with another study: %+v", m)
	}
	// A browser that connects again names the last event it had, and gets later ones.
	again, err := r.client.Do(r.get(t, "/api/studies/mine/events?after=0", "Last-Event-ID", fmt.Sprint(told)).WithContext(ctx))
	if err != nil {
		t.Fatal(err)
	}
	defer again.Body.Close()
	if a := r.call(t, "PauseStudy", getMine); a.status != 200 {
		t.Fatal(a.text)
	}
	if m := news(again.Body, told+1); m.State != "STUDY_STATE_PAUSED" {
		t.Errorf("after the pause: %+v", m)
	}
	if err := service.DeleteStudy(ctx, "mine"); err != nil {
		t.Fatal(err)
	}
	if rest, _ := io.ReadAll(again.Body); !strings.Contains(string(rest), "event: end\ndata: {\"code\":5,") {
		t.Errorf("after the deletion: %q", rest)
	}
}

// series is a value of a metric with labels.
type series struct {
	labels map[string]string
	value  float64
}

// pageMetric returns the values of a counter or gauge of a server.
func pageMetric(t *testing.T, r *running, name string) (out []series) {
	t.Helper()
	families, err := r.Registry().Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() != name {
			continue
		}
		for _, m := range f.GetMetric() {
			s := series{make(map[string]string), m.GetCounter().GetValue() + m.GetGauge().GetValue()}
			for _, l := range m.GetLabel() {
				s.labels[l.GetName()] = l.GetValue()
			}
			out = append(out, s)
		}
	}
	if len(out) == 0 {
		t.Fatalf("the server has no metric %s", name)
	}
	return out
}

// TestPageMetrics counts the sessions and the requests of a visitor who logs in and out.
func TestPageMetrics(t *testing.T) {
	path := tokenPath(t)
	admin := strings.TrimPrefix(addToken(t, path, server.Scope{Role: server.RoleAdmin}), "Bearer ")
	r := start(t, withStudies(t), server.Options{TokenFile: path}, loopback)
	sessions := func(want float64) {
		t.Helper()
		if got := pageMetric(t, r, "tuner_ui_sessions")[0].value; got != want {
			t.Errorf("there are %v sessions, want %v", got, want)
		}
	}
	sessions(0)
	cookie := sessionOf(t, r, admin)
	sessions(1)
	r.do(t, r.get(t, "/api/studies/mine/columns", "Cookie", cookie))
	r.do(t, r.get(t, "/api/studies/mine/columns"))
	r.do(t, r.post(t, "/api/logout", "{}", "Cookie", cookie))
	sessions(0)
	got := make(map[string]float64)
	for _, s := range pageMetric(t, r, "tuner_ui_requests_total") {
		got[s.labels["route"]+" "+s.labels["code"]] = s.value
	}
	for key, want := range map[string]float64{"/api/login 204": 1, "/api/logout 204": 1, "/api/studies/{study}/columns 200": 1, "/api/studies/{study}/columns 401": 1, "/ 200": 0} {
		if n, ok := got[key]; n != want || !ok {
			t.Errorf("%s: %v, want %v", key, n, want)
		}
	}
}

// TestFile checks the policy of a file, and that a name or a note cannot end an element.
func TestFile(t *testing.T) {
	s := withStudies(t)
	var out bytes.Buffer
	if err := web.WriteFile(t.Context(), s, "mine", "--db 'a b.db'", time.Now(), &out); err != nil {
		t.Fatal(err)
	}
	text := out.String()
	if n := strings.Count(text, "</script>"); n != 3 || strings.Contains(text, "unsafe") || strings.Contains(text, "import ") && strings.Contains(text, "} from \"./") {
		t.Errorf("the file has %d scripts", n)
	}
	if err := web.WriteFile(t.Context(), s, "none", "", time.Now(), &out); err == nil {
		t.Error("a study that does not exist was written")
	}
}

// TestCheckSpace checks what the page learns of spaces with faults, with advice, without an
// end and of another format.
func TestCheckSpace(t *testing.T) {
	t.Parallel() // it waits more than it computes
	r := start(t, withStudies(t), server.Options{}, loopback)
	check := func(text string) (out struct {
		Faults, Advice []struct {
			Line int
			Text string
		}
		Read, Space string
		Size        *float64
		Samples     []map[string]string
	},
	) {
		t.Helper()
		body, _ := json.Marshal(map[string]string{"space": text})
		a := r.do(t, r.post(t, "/api/space", string(body)))
		if a.status != 200 {
			t.Fatalf("%q: %d %s", text, a.status, a.text)
		}
		if err := json.Unmarshal([]byte(a.text), &out); err != nil {
			t.Fatal(err)
		}
		return out
	}
	got := check("parameters:\n  lr: {type: float, low: 1, high: 0}\n  n: {type: int, low: 1, hihg: 3}\n")
	if len(got.Faults) < 2 || got.Faults[0].Line != 2 || !strings.Contains(got.Faults[0].Text, `"lr"`) || got.Space != "" {
		t.Errorf("two faults: %+v", got)
	}
	got = check("parameters:\n  n: {type: int, low: 1, high: 3}\n  k: {type: categorical, values: [a, b]}\n")
	if got.Size == nil || *got.Size != 6 || len(got.Samples) != 5 || got.Samples[0]["k"] == "" || got.Faults != nil {
		t.Errorf("six configurations: %+v", got)
	}
	sp, _, err := space.Parse([]byte(got.Space))
	if err != nil || sp.Len() != 2 {
		t.Errorf("the space %s: %v", got.Space, err)
	}
	got = check("parameters: {lr: {type: float, low: 1e-6, high: 1}}")
	if got.Size != nil || len(got.Advice) != 1 || got.Advice[0].Line != 1 || !strings.Contains(got.Advice[0].Text, "log") {
		t.Errorf("a range for a logarithmic scale: %+v", got)
	}
	if got = check(`{"x": {"name": "FloatDistribution", "attributes": {"low": 0, "high": 1, "log": false, "step": null}}}`); got.Read == "" || got.Faults != nil {
		t.Errorf("a space of Optuna: %+v", got)
	}
	if got = check(""); len(got.Faults) == 0 {
		t.Errorf("no text: %+v", got)
	}
	for body, status := range map[string]int{`{"space": 3}`: 400, `{"space": "` + strings.Repeat("x", 3<<20) + `"}`: 413} {
		if a := r.do(t, r.post(t, "/api/space", body)); a.status != status {
			t.Errorf("%.20s: %d, want %d", body, a.status, status)
		}
	}
	if a := r.do(t, r.post(t, "/api/space", "{}", "Content-Type", "", "Content-Type", "text/plain")); a.status != 415 {
		t.Errorf("plain text: %d", a.status)
	}
}
