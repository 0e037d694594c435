package web

import (
	"cmp"
	"net/http"
	"strings"
	"time"
)

// After paceBurst requests that no token's rate has counted, a connection gets one answer in
// paceEvery. Otherwise a few hundred connections that send without waiting for answers keep
// the processors from all other callers.
const (
	paceBurst = 20
	paceEvery = 100 * time.Millisecond
)

// pace is when the next such answer of a connection is due. It has one request at a time.
type pace struct{ due time.Time }

type paceKey struct{}

// paced answers requests at the pace of their connection.
func paced(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a := &answer{ResponseWriter: w}
		next.ServeHTTP(a, r)
		p, _ := r.Context().Value(paceKey{}).(*pace)
		if p == nil || a.code < http.StatusBadRequest && strings.HasPrefix(r.URL.Path, servicePath) {
			return
		}
		now := time.Now()
		if first := now.Add(-paceBurst * paceEvery); p.due.Before(first) {
			p.due = first
		}
		if p.due = p.due.Add(paceEvery); !p.due.After(now) {
			return
		}
		_ = http.NewResponseController(w).Flush()
		select {
		case <-time.After(p.due.Sub(now)):
		case <-r.Context().Done():
		}
	})
}

// answer notes whether an answer has begun, and with which status.
type answer struct {
	http.ResponseWriter
	code int
}

func (a *answer) WriteHeader(code int) {
	a.code = code
	a.ResponseWriter.WriteHeader(code)
}

func (a *answer) Write(p []byte) (int, error) {
	a.code = cmp.Or(a.code, http.StatusOK)
	return a.ResponseWriter.Write(p)
}

// Unwrap is for [http.ResponseController].
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }
