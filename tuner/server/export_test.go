package server

import (
	"io"
	"net/http/httptest"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
	"google.golang.org/grpc"
)

// MetricsText returns the metrics in the format of Prometheus.
func (s *Server) MetricsText() string {
	w := httptest.NewRecorder()
	promhttp.HandlerFor(s.options.Registry, promhttp.HandlerOpts{}).ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	return w.Body.String()
}

// ServiceInfo returns the registered services.
func (s *Server) ServiceInfo() map[string]grpc.ServiceInfo { return s.grpc.GetServiceInfo() }

// CheckComplete checks services against the table of permissions.
func CheckComplete(services map[string]grpc.ServiceInfo) error {
	return checkComplete(services, methods())
}

// RecheckEvery sets how often idle streams are checked against the tokens.
func (s *Server) RecheckEvery(d time.Duration) { s.recheck = d }

// NewID returns the id of a token that is added to a file of tokens with the ids.
func NewID(random io.Reader, ids ...string) (string, error) {
	var f tokenFile
	for _, id := range ids {
		f.Tokens = append(f.Tokens, storedToken{TokenInfo: TokenInfo{ID: id}})
	}
	return f.newID(random)
}
