package client

import (
	"context"
	"crypto/tls"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc/connectivity"

	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/wire"
)

// Trouble describes a server that cannot be reached.
type Trouble struct {
	Address string
	Why     string    // the error of the last try
	Until   time.Time // when the call will give up
}

// troubleAfter is the time after which [Options.OnTrouble] is called for a call that
// cannot reach its server.
const troubleAfter = 2 * time.Second

// lookout reports a call that cannot reach its server.
type lookout struct {
	client *Client
	until  time.Time
	timer  *time.Timer

	mu  sync.Mutex
	why string
}

// lookOut begins to watch a call, and [lookout.end] ends it.
func (c *Client) lookOut(until time.Time) *lookout {
	l := &lookout{client: c, until: until, why: "no answer yet"}
	if c.onTrouble != nil && c.retryFor > troubleAfter {
		l.timer = time.AfterFunc(troubleAfter, l.report)
	}
	return l
}

func (l *lookout) report() {
	if l.client.conn.GetState() == connectivity.Ready || l.client.troubled.Swap(true) {
		return
	}
	l.mu.Lock()
	why := l.why
	l.mu.Unlock()
	l.client.onTrouble(Trouble{l.client.address, why, l.until})
}

// failed notes the error of a try.
func (l *lookout) failed(err error) {
	if a, ok := wire.ReadError(err); ok && unreachable(a) {
		l.mu.Lock()
		l.why = reason(a.Err.Message)
		l.mu.Unlock()
	}
}

func (l *lookout) end() {
	if l.timer != nil {
		l.timer.Stop()
	}
}

// unreachable tells whether an answer does not come from a server.
func unreachable(a wire.Answer) bool { return !a.ByService && a.Err.Code == tuner.Unavailable }

// hopeless tells whether a connection failed because of certificates, because only one side
// speaks TLS, or because the other speaks no gRPC. Waiting helps with neither.
func (c *Client) hopeless(ctx context.Context, a wire.Answer) bool {
	if !unreachable(a) {
		return false
	}
	for _, sign := range []string{"HTTP/1.1 header", "missing selected ALPN", "tls: no application protocol", "does not look like a TLS handshake", "x509: ", "tls: certificate required", "tls: bad certificate", "tls: unknown certificate", "tls: expired certificate"} {
		if strings.Contains(a.Err.Message, sign) {
			return true
		}
	}
	return c.plaintext && strings.Contains(a.Err.Message, "server preface") && c.speaksTLS(ctx)
}

// speaksTLS tells whether a server answers a TLS handshake. A server that stops may
// close a connection as one with TLS does, so the error of a call is not enough.
func (c *Client) speaksTLS(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	// No data are sent, so the certificate need not be verified.
	d := tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}}}
	return slices.ContainsFunc(Addresses(c.address), func(address string) bool {
		network := "tcp"
		if path, ok := strings.CutPrefix(address, "unix:"); ok {
			network, address = "unix", path
		}
		conn, err := d.DialContext(ctx, network, address)
		if err == nil {
			conn.Close()
			return true
		}
		return strings.Contains(err.Error(), "remote error: tls: ")
	})
}

// reason is the part of gRPC's message that has the reason.
func reason(message string) string {
	if _, quoted, ok := strings.Cut(message, "desc = "); ok {
		if prefix, err := strconv.QuotedPrefix(quoted); err == nil {
			message, _ = strconv.Unquote(prefix)
		}
	}
	for _, noise := range []string{"transport: ", "Error while dialing: ", "authentication handshake failed: "} {
		message = strings.TrimPrefix(message, noise)
	}
	return message
}

const httpPort = "that is a port for browsers or metrics, so name the address of tuner serve --listen"

// remedies are the remedies for messages with a sign. The first match counts.
var remedies = []struct{ sign, remedy string }{
	{"x509: certificate signed by unknown authority", "name the CA certificate that signed the server's (--ca)"},
	{"x509: certificate has expired", "the server needs a new certificate, or a clock is wrong"},
	{"x509: ", "the server's certificate must be valid for the name by which it is reached"},
	{"certificate required", "the server needs a client certificate (--cert, --key)"},
	{"HTTP/1.1 header", httpPort},
	{"missing selected ALPN", httpPort},
	{"tls: no application protocol", httpPort},
	{"remote error: tls: ", "the server refuses the client certificate (--cert, --key)"},
	{"server preface", "it may speak TLS, so name the CA certificate that signed its certificate (--ca)"},
	{"does not look like a TLS handshake", "it does not speak TLS, so leave --ca and --cert out"},
	{"connection refused", "does a server run there? (tuner serve)"},
	{"no such file", "does a server run there? (tuner serve)"},
	{"no such host", "check the name"},
	{"produced zero addresses", "check the name"},
}

// farRemedies come first for a server on another machine, where only --insecure turns TLS off.
var farRemedies = []struct{ sign, remedy string }{
	{"server preface", "it may speak TLS, so leave --insecure out"},
	{"does not look like a TLS handshake", "it does not speak TLS, so use --insecure, without --ca and --cert, if others may listen"},
}

// explain adds the address, the reason and a remedy to an answer that does not come from
// a server.
func (c *Client) explain(a wire.Answer) string {
	if a.ByService && a.Err.Code == tuner.Denied && c.anonymous {
		return a.Err.Message + "; name the file with the token (--token-file), or put the token into TUNER_TOKEN"
	}
	if !unreachable(a) {
		return a.Err.Message
	}
	text := "cannot reach " + c.address + ": " + reason(a.Err.Message)
	known := remedies
	if !Local(c.address) {
		known = slices.Concat(farRemedies, remedies)
	}
	for _, r := range known {
		if strings.Contains(text, r.sign) {
			return text + "; " + r.remedy
		}
	}
	return text + "; check the address and whether the server runs"
}
