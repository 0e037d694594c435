package server

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/bkbtuner/bkb/tuner"
)

// DefaultAddress is where a server listens unless told otherwise.
const DefaultAddress = "127.0.0.1:7070"

// Options are how a [Server] runs. The zero Options are a server on
// [DefaultAddress] in the clear, for whoever is on the same machine.
type Options struct {
	// Address to listen on, host:port or unix:path (a socket that only its
	// owner can use). Empty: [DefaultAddress].
	Address string
	// CertFile and KeyFile are the server's certificate and key, PEM; TLS is
	// on if they are given. They are read again when they change.
	CertFile, KeyFile string
	// AllowTLS12 takes callers that cannot do TLS 1.3.
	AllowTLS12 bool
	// ClientCAFile holds, PEM, who signs the certificates of clients. With
	// ClientScopes or without TokenFile a certificate can stand in for a token;
	// with TokenFile and no ClientScopes callers need both.
	ClientCAFile string
	// ClientScopes says what the bearers of certificates may do, by a subject
	// alternative name (DNS name, URI, e-mail address) of theirs.
	ClientScopes map[string]Scope
	// TokenFile holds the tokens that are valid; see [AddToken]. It must exist.
	// Empty: no tokens.
	TokenFile string
	// InsecureAllowRemote lets the server listen where others can reach it
	// without TLS, or without tokens and client certificates.
	InsecureAllowRemote bool
	// Reflection lets callers list methods and messages.
	Reflection bool
	// MetricsAddress is where Prometheus can scrape /metrics, over HTTP. Empty:
	// nowhere. It must be on loopback unless MetricsAllowRemote.
	MetricsAddress     string
	MetricsAllowRemote bool
	// AuditFile gets a line in JSON for each change, beside the log; empty for none.
	// Lines are appended and not synced one by one.
	AuditFile string
	// Limits beyond which callers are refused.
	Limits Limits
	// Memory refuses large calls while memory is short. A nil Memory refuses none. Share
	// it with the service.
	Memory *tuner.Memory
	// StopTimeout is how long calls under way have to finish when the server
	// stops. 0: 10 s.
	StopTimeout time.Duration
	// DrainDelay is how long the server goes on after its health checks say
	// NOT_SERVING. 0: 250 ms.
	DrainDelay time.Duration
	// Logger hears of refusals (warn), faults (error), start, stop and changes
	// (info) and calls (debug). nil: nobody does.
	Logger *slog.Logger
	// OnServing is called once, when the server has begun to serve; nil: nothing is.
	OnServing func()
	// Registry gets the server's metrics, and is the place for the service's
	// own. nil: the server makes one, with the process's too; see
	// [Server.Registry].
	Registry *prometheus.Registry
}

// Limits are what callers can make large, many or slow. A zero field has the
// default named at it, a negative count or rate means no limit.
type Limits struct {
	MaxRecvBytes   int // one message from a caller: 1 MiB
	MaxSendBytes   int // one message to a caller: 16 MiB; a page takes at most 3 MiB, or half of this if that is less
	MaxHeaderBytes int // the headers of a call: 16 KiB
	// MaxInFlightBytes of requests at once, all callers together: 32 MiB. In
	// memory they can take some sixty times that.
	MaxInFlightBytes int
	MaxConnections   int // at once: 2,000; more are closed
	// MaxConnectionsPerAddress at once from one IP address: 1,000.
	MaxConnectionsPerAddress int
	// MaxStrangers is how many connections at once can be without a call that showed
	// a token or certificate: 1,024, and 512 from one address. One of them is
	// closed to make room for a new one. On a server without tokens any call but a
	// health check will do.
	MaxStrangers, MaxStrangersPerAddress int
	StrangerIdle                         time.Duration // without a health check either, it is closed: 1 min
	MaxHealthWatches                     int           // health watches at once: 256
	MaxHealthWatchesPerAddress           int           // and from one address: 32

	MaxStreams          int     // calls at once on one connection: 128
	MaxInFlight         int     // calls at once, streams included and health checks not: 4,096, of which only admins may use the last tenth
	MaxInFlightPerToken int     // with one token or certificate: 1,024
	MaxInFlightPerStudy int     // to one study, streams not included: 2,048
	MaxWatches          int     // Watch streams at once: 1,000, of which only admins may use the last tenth
	MaxWatchesPerToken  int     // with one token or certificate: 200
	MaxWatchesPerStudy  int     // of one study: 500
	MaxBackups          int     // backups at once: 2
	Rate                float64 // calls a second with one token or certificate: 200
	Burst               int     // calls that may come together: 400
	// WriteRate is how many bytes a second the requests of one token or certificate
	// that change something may have: 2 MiB, and 16 times that together.
	WriteRate float64

	AuthFailureRate float64       // failed authentications a second from one IP address: 5
	ConnectTimeout  time.Duration // to be through with the handshakes of TLS and HTTP/2: 10 s
	CallTimeout     time.Duration // of a call whose caller set none: 30 s
	AskTimeout      time.Duration // of an ask whose caller set none: 60 s
	MinPingInterval time.Duration // callers that ping more often are cut off: 20 s
	PingInterval    time.Duration // the server pings a silent connection: 60 s
	PingTimeout     time.Duration // and closes it without an answer: 20 s
	MaxIdle         time.Duration // a connection without calls is closed: 15 min
	MaxAge          time.Duration // a connection is asked to make way for a new one: 30 min
	MaxAgeGrace     time.Duration // and closed so long after: 30 s

	maxMemory int64 // of Options.Memory, for messages
}

func (o Options) withDefaults() Options {
	fill(&o.Address, DefaultAddress)
	fill(&o.StopTimeout, 10*time.Second)
	fill(&o.DrainDelay, 250*time.Millisecond)
	o.Limits = o.Limits.withDefaults()
	o.Limits.maxMemory = o.Memory.Limit()
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Registry == nil {
		o.Registry = prometheus.NewRegistry()
		o.Registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	}
	return o
}

func (l Limits) withDefaults() Limits {
	fill(&l.MaxRecvBytes, 1<<20)
	fill(&l.MaxSendBytes, 16<<20)
	fill(&l.MaxHeaderBytes, 16<<10)
	fill(&l.MaxInFlightBytes, 32<<20)
	fill(&l.MaxConnections, 2000)
	fill(&l.MaxConnectionsPerAddress, 1000)
	fill(&l.MaxStrangers, 1024)
	fill(&l.MaxStrangersPerAddress, 512)
	fill(&l.StrangerIdle, time.Minute)
	fill(&l.MaxHealthWatches, 256)
	fill(&l.MaxHealthWatchesPerAddress, 32)
	fill(&l.MaxStreams, 128)
	fill(&l.MaxInFlight, 4096)
	fill(&l.MaxInFlightPerToken, 1024)
	fill(&l.MaxInFlightPerStudy, 2048)
	fill(&l.MaxWatches, 1000)
	fill(&l.MaxWatchesPerToken, 200)
	fill(&l.MaxWatchesPerStudy, 500)
	fill(&l.WriteRate, 2<<20)
	fill(&l.MaxBackups, 2)
	fill(&l.Rate, 200)
	fill(&l.Burst, 400)
	fill(&l.AuthFailureRate, 5)
	fill(&l.ConnectTimeout, 10*time.Second)
	fill(&l.CallTimeout, 30*time.Second)
	fill(&l.AskTimeout, time.Minute)
	fill(&l.MinPingInterval, 20*time.Second)
	fill(&l.PingInterval, time.Minute)
	fill(&l.PingTimeout, 20*time.Second)
	fill(&l.MaxIdle, 15*time.Minute)
	fill(&l.MaxAge, 30*time.Minute)
	fill(&l.MaxAgeGrace, 30*time.Second)
	return l
}

// fill replaces the zero value by the default.
func fill[T comparable](v *T, otherwise T) {
	var zero T
	if *v == zero {
		*v = otherwise
	}
}

// Validate reports everything that is wrong with the options, as far as can be
// said without opening files or listening.
func (o Options) Validate() error {
	faults := o.Limits.faults()
	add := func(wrong bool, format string, args ...any) {
		if wrong {
			faults = append(faults, fmt.Errorf(format, args...))
		}
	}
	o = o.withDefaults()
	_, err := parseAddress(o.Address)
	add(err != nil, "address: %w", err)
	if o.MetricsAddress != "" {
		_, err := parseAddress(o.MetricsAddress)
		add(err != nil, "metrics address: %w", err)
	}
	add((o.CertFile == "") != (o.KeyFile == ""), "a certificate and its key are given together or not at all")
	add(o.ClientCAFile != "" && !o.tls(), "client certificates need TLS: give the server a certificate and key")
	add(o.AllowTLS12 && !o.tls(), "TLS 1.2 is allowed but TLS is off: give a certificate and key")
	add(len(o.ClientScopes) > 0 && o.ClientCAFile == "", "scopes of client certificates need the authority that signs them")
	add(o.ClientCAFile != "" && len(o.ClientScopes) == 0 && o.TokenFile == "",
		"client certificates without scopes and without tokens permit nobody anything: give scopes or a token file")
	for _, name := range slices.Sorted(maps.Keys(o.ClientScopes)) {
		err := o.ClientScopes[name].Validate()
		add(err != nil, "scope of client certificate %q: %w", name, err)
		add(name == "" || len(name) > maxCertificateName || !utf8.ValidString(name), "scope of client certificate %q: its name must be UTF-8 of 1 to %d bytes", name, maxCertificateName)
	}
	add(o.StopTimeout < 0 || o.DrainDelay < 0, "times must not be negative")
	return errors.Join(faults...)
}

// maxCertificateName is the most bytes of a certificate's name, which events store.
const maxCertificateName = 256

func (l Limits) faults() (faults []error) {
	for _, f := range []struct {
		name string
		v    int64
	}{
		{"message size", int64(l.MaxRecvBytes)},
		{"answer size", int64(l.MaxSendBytes)},
		{"header size", int64(l.MaxHeaderBytes)},
		{"connect timeout", int64(l.ConnectTimeout)},
		{"call timeout", int64(l.CallTimeout)},
		{"ask timeout", int64(l.AskTimeout)},
		{"ping interval", int64(min(l.MinPingInterval, l.PingInterval, l.PingTimeout))},
		{"connection age", int64(min(l.MaxIdle, l.MaxAge, l.MaxAgeGrace, l.StrangerIdle))},
	} {
		if f.v < 0 {
			faults = append(faults, fmt.Errorf("limits: the %s must not be negative", f.name))
		}
	}
	return faults
}

func (o Options) tls() bool { return o.CertFile != "" || o.KeyFile != "" }

// closed tells whether callers must show who they are.
func (o Options) closed() bool { return o.TokenFile != "" || o.ClientCAFile != "" }
