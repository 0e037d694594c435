package web

import (
	"fmt"
	"net/http"
	"strings"

	"google.golang.org/grpc/codes"

	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/server"
	"github.com/bkbtuner/bkb/tuner/wire"
)

// sameSite refuses requests that a web page of another site made a browser send. The
// answers say nothing to such a page, because no header of CORS permits it to read them.
func (f *Face) sameSite(loopback bool, next http.Handler) http.Handler {
	origins := http.NewCrossOriginProtection()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for _, h := range headers {
			w.Header().Set(h[0], h[1])
		}
		if loopback && !server.ThisMachine(r.Host) {
			f.refuse(w, http.StatusMisdirectedRequest, wire.NewStatus(codes.PermissionDenied, tuner.Denied,
				fmt.Sprintf("a server on loopback takes requests for localhost or an IP address only, not for the host %.100q", r.Host)))
			return
		}
		if err := origins.Check(r); err != nil {
			f.refuse(w, http.StatusForbidden, wire.NewStatus(codes.PermissionDenied, tuner.Denied,
				fmt.Sprintf("only web pages of %.100q may send this request, not those of %.100q", r.Host, r.Header.Get("Origin"))))
			return
		}
		if site := r.Header.Get("Sec-Fetch-Site"); site != "" && site != "same-origin" && site != "none" && strings.HasPrefix(r.URL.Path, "/api/") {
			f.refuse(w, http.StatusForbidden, wire.NewStatus(codes.PermissionDenied, tuner.Denied,
				fmt.Sprintf("only web pages of %.100q may send this request, and this one comes from another site", r.Host)))
			return
		}
		next.ServeHTTP(w, r)
	})
}

// headers are in each answer. A handler may replace Cache-Control.
var headers = [][2]string{
	{"X-Content-Type-Options", "nosniff"},
	{"Cache-Control", "no-store"},
	{"Content-Security-Policy", policy},
	{"Referrer-Policy", "no-referrer"},
	{"Cross-Origin-Opener-Policy", "same-origin"},
	{"Cross-Origin-Resource-Policy", "same-origin"},
}
