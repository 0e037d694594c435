package client

import (
	"context"
	"crypto/tls"
	"strconv"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc/connectivity"

	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/wire"
)

// Trouble is that a server cannot be reached.
type Trouble struct {
	Address string
	Why     string    // what the last try met
	Until   time.Time // when the call will give up
}

// troubleAfter is how long a call may take to reach its server before
// [Options.OnTrouble] hears of it.
const troubleAfter = 2 * time.Second

// lookout reports a call that cannot reach its server.
type lookout struct {
	client *Client
	until  time.Time
	timer  *time.Timer

	mu  sync.Mutex
	why string
}

// lookOut begins to watch a call; [lookout.end] ends it.
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

// failed notes what a try met.
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

// unreachable tells whether an answer is no server's.
func unreachable(a wire.Answer) bool { return !a.ByService && a.Err.Code == tuner.Unavailable }

// hopeless tells whether a connection failed for certificates or because one side
// speaks TLS and the other does not. Waiting does not change either.
func (c *Client) hopeless(ctx context.Context, a wire.Answer) bool {
	if !unreachable(a) {
		return false
	}
	if c.plaintext && strings.Contains(a.Err.Message, "server preface") {
		return c.speaksTLS(ctx)
	}
	for _, sign := range []string{"does not look like a TLS handshake", "x509: ", "tls: certificate required", "tls: bad certificate", "tls: unknown certificate", "tls: expired certificate"} {
		if strings.Contains(a.Err.Message, sign) {
			return true
		}
	}
	return false
}

// speaksTLS tells whether the server answers a TLS handshake. A server that stops may
// close a connection as one with TLS does, so the error of a call is not enough.
func (c *Client) speaksTLS(ctx context.Context) bool {
	network, address := "tcp", strings.TrimPrefix(c.address, "passthrough:///")
	if path, ok := strings.CutPrefix(address, "unix:"); ok {
		network, address = "unix", path
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	// No data are sent, so the certificate need not be verified.
	d := tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}}}
	conn, err := d.DialContext(ctx, network, address)
	if err == nil {
		conn.Close()
		return true
	}
	return strings.Contains(err.Error(), "remote error: tls: ")
}

// reason is the part of gRPC's message that says something.
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

// remedies say what to do, by what a message has in it; the first that fits.
var remedies = []struct{ sign, remedy string }{
	{"x509: certificate signed by unknown authority", "name the file with who signs the server's certificate (--ca)"},
	{"x509: certificate has expired", "the server needs a new certificate, or a clock is wrong"},
	{"x509: ", "the server's certificate must be valid for the name by which it is reached"},
	{"certificate required", "the server wants a certificate of ours (--cert, --key)"},
	{"remote error: tls: ", "the server does not take our certificate (--cert, --key)"},
	{"server preface", "it may speak TLS: name the file with who signs its certificate (--ca), and leave --insecure out"},
	{"does not look like a TLS handshake", "it does not speak TLS: leave --ca and --cert out, or say --insecure if others may listen"},
	{"connection refused", "does a server run there? (tuner serve)"},
	{"no such file", "does a server run there? (tuner serve)"},
	{"no such host", "check the name"},
	{"produced zero addresses", "check the name"},
}

// explain says of an answer that is no server's which one did not answer, why,
// and what to do.
func (c *Client) explain(a wire.Answer) string {
	if a.ByService && a.Err.Code == tuner.Denied && c.anonymous {
		return a.Err.Message + "; name the file with the token (--token-file), or put the token into TUNER_TOKEN"
	}
	if !unreachable(a) {
		return a.Err.Message
	}
	text := "cannot reach " + c.address + ": " + reason(a.Err.Message)
	for _, r := range remedies {
		if strings.Contains(text, r.sign) {
			return text + "; " + r.remedy
		}
	}
	return text + "; check the address and whether the server runs"
}
