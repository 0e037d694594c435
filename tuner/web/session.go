package web

import (
	"crypto/rand"
	"crypto/subtle"
	"encoding/json"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	pb "github.com/bkbtuner/bkb/proto/tuner/v1"
	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/wire"
)

const (
	sessionLife = 12 * time.Hour
	maxSessions = 10_000
	// maxTokenSessions is the largest number of sessions of a token. So a visitor who logs
	// in again and again ends only sessions of the own token.
	maxTokenSessions = 100
	// maxLogin is the size of the largest login in bytes.
	maxLogin = 4 << 10
)

// sessions are the visitors who logged in. A browser holds a random id, and the token
// stays here. They end with the process.
type sessions struct {
	mu  sync.Mutex
	all map[string]session
}

type session struct {
	authorization string // header for the calls of the session, empty for a visitor with the key
	until         time.Time
}

// add begins a session and returns its id. Beyond the limit of the token or of all, the
// session among those that ends first makes room.
func (s *sessions) add(authorization string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all == nil {
		s.all = make(map[string]session)
	}
	s.expire()
	var first, firstOfToken string
	ofToken := 0
	for id, v := range s.all {
		if first == "" || v.until.Before(s.all[first].until) {
			first = id
		}
		if v.authorization != authorization {
			continue
		}
		if ofToken++; firstOfToken == "" || v.until.Before(s.all[firstOfToken].until) {
			firstOfToken = id
		}
	}
	switch {
	case ofToken >= maxTokenSessions:
		delete(s.all, firstOfToken)
	case len(s.all) >= maxSessions:
		delete(s.all, first)
	}
	id := rand.Text()
	s.all[id] = session{authorization, time.Now().Add(sessionLife)}
	return id
}

func (s *sessions) get(id string) (session, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	v, ok := s.all[id]
	if ok && time.Now().After(v.until) {
		delete(s.all, id)
		return session{}, false
	}
	return v, ok
}

// count is the number of sessions that have not ended.
func (s *sessions) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expire()
	return len(s.all)
}

// expire removes the sessions that have ended. The lock is held.
func (s *sessions) expire() {
	now := time.Now()
	maps.DeleteFunc(s.all, func(_ string, v session) bool { return now.After(v.until) })
}

func (s *sessions) remove(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.all, id)
}

// cookieName is the name of the session's cookie. Cookies ignore ports, so the name has
// the port for the sake of other servers on the same host. Browsers take a name that
// begins with __Host- from an encrypted connection only.
func cookieName(r *http.Request) string {
	name := "bkb"
	if _, port, err := net.SplitHostPort(r.Host); err == nil {
		name += "-" + port
	}
	if r.TLS != nil {
		return "__Host-" + name
	}
	return name
}

// visitor gives a request without an Authorization that of its session. If the face has a
// key, it refuses requests without a session.
func (f *Face) visitor(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		known := false
		if r.Header.Get("Authorization") == "" {
			if c, err := r.Cookie(cookieName(r)); err == nil {
				var s session
				if s, known = f.sessions.get(c.Value); known && s.authorization != "" {
					r.Header.Set("Authorization", s.authorization)
				}
			}
		}
		if f.key != "" && !known && needsSession(r) {
			f.refuse(w, http.StatusUnauthorized, wire.NewStatus(codes.Unauthenticated, tuner.Denied,
				"this browser has no session here, or tuner ui was started anew; open the address that tuner ui printed when it started"))
			return
		}
		next.ServeHTTP(w, r)
	})
}

// needsSession tells whether a request reads or changes data.
func needsSession(r *http.Request) bool {
	return r.URL.Path != "/api/login" && (strings.HasPrefix(r.URL.Path, "/api/") || strings.HasPrefix(r.URL.Path, servicePath))
}

// login begins a session for a token that the service knows, or for the key of the face.
func (f *Face) login(w http.ResponseWriter, r *http.Request) {
	if refusal := checkType(r.Header); refusal != nil {
		f.refuse(w, http.StatusUnsupportedMediaType, refusal)
		return
	}
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(f.limits.CallTimeout))
	var m struct {
		Token string `json:"token"`
	}
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxLogin)).Decode(&m); err != nil || m.Token == "" {
		f.fail(w, r, wire.NewStatus(codes.InvalidArgument, tuner.Invalid, `the body must be a JSON object with the field "token"`).Err())
		return
	}
	authorization := "Bearer " + m.Token
	if f.key != "" {
		if subtle.ConstantTimeCompare([]byte(m.Token), []byte(f.key)) == 0 {
			f.refuse(w, http.StatusUnauthorized, wire.NewStatus(codes.Unauthenticated, tuner.Denied,
				"the key is not that of this server; copy the address again that tuner ui printed when it started"))
			return
		}
		authorization = ""
	}
	who, err := f.nameOf(r, authorization)
	if err != nil {
		f.fail(w, r, err)
		return
	}
	http.SetCookie(w, &http.Cookie{
		Name: cookieName(r), Value: f.sessions.add(authorization), Path: "/", MaxAge: int(sessionLife.Seconds()),
		HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: r.TLS != nil,
	})
	attrs := []slog.Attr{slog.String("who", who), slog.String("from", r.RemoteAddr)}
	if id := wire.TraceID(r.Header.Get("Traceparent")); id != "" {
		attrs = append(attrs, slog.String("trace_id", id))
	}
	f.log.LogAttrs(r.Context(), slog.LevelInfo, "login to the page", attrs...)
	w.WriteHeader(http.StatusNoContent)
}

// nameOf returns the caller's name with an authorization, as the audit has it.
func (f *Face) nameOf(r *http.Request, authorization string) (string, error) {
	c := callerOf(r)
	c.Authorization = nil
	if authorization != "" {
		c.Authorization = []string{authorization}
	}
	who, err := ask[*pb.Caller](r.Context(), f, c, pb.Tuner_GetCaller_FullMethodName, &pb.GetCallerRequest{})
	if status.Code(err) == codes.Unauthenticated {
		err = wire.NewStatus(codes.Unauthenticated, tuner.Denied,
			"the server does not know this token, or it has expired or was revoked; an admin makes one with tuner token add").Err()
	}
	return who.GetName(), err
}

// logout ends the session of a browser.
func (f *Face) logout(w http.ResponseWriter, r *http.Request) {
	name := cookieName(r)
	if c, err := r.Cookie(name); err == nil {
		f.sessions.remove(c.Value)
	}
	http.SetCookie(w, &http.Cookie{Name: name, Path: "/", MaxAge: -1, HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: r.TLS != nil})
	w.WriteHeader(http.StatusNoContent)
}
