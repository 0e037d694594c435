package web

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"google.golang.org/protobuf/proto"

	pb "github.com/bkbtuner/bkb/proto/tuner/v1"
)

// static holds the files of the page. They are served as they are, without a build.
//
//go:embed static
var static embed.FS

// policy permits the page its own files only. No script can come from data, because
// nothing may be turned into code or markup.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; " +
	"form-action 'self'; base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"

// pagePaths are the addresses within the page. The page reads its own address and asks
// the API for what belongs there, so the same document is right for all of them.
var pagePaths = []string{"/{$}", "/new", "/workers", "/compare", "/studies/{study}", "/studies/{study}/trials/{number}"}

// page is the document of the page, which names its files.
type page struct {
	root     string // below which the files are, with the hash of all of them
	index    []byte
	requests *prometheus.CounterVec // by route and status
}

// register adds the metrics of the page, with the number of its sessions.
func (p *page) register(r prometheus.Registerer, sessions *sessions) error {
	p.requests = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "tuner_ui_requests_total", Help: "Requests for the page and its private API, by route and status.",
	}, []string{"route", "code"})
	open := prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "tuner_ui_sessions", Help: "Browsers that are logged in to the page."}, func() float64 { return float64(sessions.count()) })
	return errors.Join(r.Register(p.requests), r.Register(open))
}

// newPage reads the embedded files. All have one path that changes when any of them does,
// so browsers can keep them for ever and modules can import each other by plain names.
func newPage(connection string) (*page, error) {
	all := sha256.New()
	err := fs.WalkDir(static, "static", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := static.ReadFile(name)
		fmt.Fprintf(all, "%s %d\n%s", name, len(data), data)
		return err
	})
	index, missing := static.ReadFile("static/index.html")
	root := "/static/" + hex.EncodeToString(all.Sum(nil)[:8]) + "/"
	text := strings.NewReplacer("/static/", root, "{{connection}}", html.EscapeString(connection)).Replace(string(index))
	return &page{root: root, index: []byte(text)}, errors.Join(err, missing)
}

// serveFile answers with a file, or 304 if the browser has it.
func serveFile(w http.ResponseWriter, r *http.Request, name string, data []byte, keep string) {
	kind := mime.TypeByExtension(path.Ext(name))
	switch path.Ext(name) { // the same on each machine
	case ".js":
		kind = "text/javascript; charset=utf-8"
	case ".svg":
		kind = "image/svg+xml"
	case ".sum", ".txt":
		kind = "text/plain; charset=utf-8"
	}
	w.Header().Set("Content-Type", kind)
	w.Header().Set("ETag", fmt.Sprintf(`"%x"`, sha256.Sum256(data)))
	w.Header().Set("Cache-Control", keep)
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(data))
}

// routes adds the page and its private API to a mux. The API may change in any version.
// Programs use the methods of the service instead.
func (p *page) routes(f *Face, mux *http.ServeMux, compressed func(http.Handler) http.HandlerFunc) {
	handle := func(pattern, route string, h http.HandlerFunc) {
		counter := p.requests.MustCurryWith(prometheus.Labels{"route": route})
		counter.WithLabelValues("200") // so that a scrape has all routes
		mux.Handle(pattern, promhttp.InstrumentHandlerCounter(counter, h))
	}
	for _, path := range pagePaths {
		handle("GET "+path, strings.TrimSuffix(path, "{$}"), compressed(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			serveFile(w, r, "index.html", p.index, "no-cache")
		})))
	}
	handle("GET "+p.root+"{file...}", "/static/{file}", compressed(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := r.PathValue("file")
		data, err := static.ReadFile("static/" + name)
		if err != nil || name == "index.html" {
			f.noPath(w, r)
			return
		}
		serveFile(w, r, name, data, "public, max-age=31536000, immutable")
	})))
	for pattern, h := range map[string]http.HandlerFunc{
		"POST /api/login":                  f.login,
		"POST /api/logout":                 f.logout,
		"POST /api/space":                  f.checkSpace,
		"GET /api/methods":                 f.listMethods,
		"GET /api/backup":                  f.backup,
		"GET /api/studies/{study}/columns": compressed(http.HandlerFunc(f.columns)),
		"GET /api/studies/{study}/events":  f.events,
	} {
		_, route, _ := strings.Cut(pattern, " ")
		handle(pattern, route, h)
	}
}

// listMethods lists what a new study can be made with. Each known caller may read it.
func (f *Face) listMethods(w http.ResponseWriter, r *http.Request) {
	_, err := f.pipe.Admit(r.Context(), callerOf(r), pb.Tuner_GetCaller_FullMethodName)
	var data []byte
	if err == nil {
		data, err = json.Marshal(f.components)
	}
	if err != nil {
		f.fail(w, r, err)
		return
	}
	f.write(w, http.StatusOK, data)
}

// backup sends a backup as a file. If it fails on the way, the connection breaks, so that the
// browser does not keep a part of it.
func (f *Face) backup(w http.ResponseWriter, r *http.Request) {
	ctx, err := f.pipe.Admit(r.Context(), callerOf(r), pb.Tuner_Backup_FullMethodName)
	begun := false
	var gone error // of the caller
	if err == nil {
		err = f.pipe.Stream(ctx, pb.Tuner_Backup_FullMethodName, &pb.BackupRequest{}, func(m proto.Message) error {
			if m == nil {
				return nil
			}
			if !begun {
				w.Header().Set("Content-Type", "application/octet-stream")
				w.Header().Set("Content-Disposition", `attachment; filename="tuner-backup.db"`)
			}
			begun = true
			gone = inPieces(w, m.(*pb.BackupResponse).GetChunk(), f.writeTimeout)
			return gone
		})
	}
	switch {
	case err == nil || gone != nil:
	case begun:
		f.log.Warn("a backup for a browser broke off", "error", err)
		panic(http.ErrAbortHandler)
	default:
		f.fail(w, r, err)
	}
}
