package server

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"reflect"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/bkbtuner/bkb/tuner/memlimit"
)

// DefaultAddress is the default of Options.Address.
const DefaultAddress = "127.0.0.1:7070"

// Options are the settings of a [Server]. A server with zero Options listens on
// [DefaultAddress] without TLS, and admits every caller on the same machine.
type Options struct {
	// Address to listen on, as host:port or unix:path. Only the owner of a socket can
	// use it. If empty, it is [DefaultAddress].
	Address string
	// CertFile and KeyFile are the server's certificate and key in PEM. They turn TLS
	// on, and are read again when they change.
	CertFile, KeyFile string
	// AllowTLS12 also accepts callers that cannot use TLS 1.3.
	AllowTLS12 bool
	// ClientCAFile holds the CA certificates that sign client certificates, in PEM.
	// With ClientScopes or without TokenFile, a client certificate can replace a token.
	// With TokenFile and without ClientScopes, callers need both.
	ClientCAFile string
	// ClientScopes maps a subject alternative name (DNS name, URI or e-mail address) of
	// a client certificate to its scope.
	ClientScopes map[string]Scope
	// TokenFile holds the valid tokens (see [AddToken]) and must exist. If empty, the
	// server accepts no tokens.
	TokenFile string
	// InsecureAllowRemote lets other machines reach the server without TLS, or without
	// tokens and client certificates.
	InsecureAllowRemote bool
	// Reflection lets callers list methods and messages.
	Reflection bool
	// MetricsAddress is where Prometheus can scrape /metrics over HTTP. If empty,
	// metrics are not served. It must be on loopback unless MetricsAllowRemote is set.
	MetricsAddress     string
	MetricsAllowRemote bool
	// AuditFile gets a line in JSON for each change, in addition to the log. Lines are
	// appended and not synced one by one. If empty, there is no audit file.
	AuditFile string
	// Limits are the limits on callers.
	Limits Limits
	// Memory refuses large calls while memory is short. Use the same Memory for the
	// service. A nil Memory refuses none.
	Memory *memlimit.Limit
	// StopTimeout is how long running calls may take to finish when the server stops. 0
	// means 10 s.
	StopTimeout time.Duration
	// DrainDelay is how long the server keeps serving after its health checks answer
	// NOT_SERVING. 0 means 250 ms.
	DrainDelay time.Duration
	// Logger receives refusals (warn), errors (error), starts, stops and changes (info)
	// and calls (debug). nil discards them.
	Logger *slog.Logger
	// OnServing, if not nil, is called once, when the server begins to serve.
	OnServing func()
	// Registry receives the server's metrics, and you can register the service's own. If nil, the
	// server makes one that also has the metrics of the process (see [Server.Registry]).
	Registry *prometheus.Registry
}

// Limits limit what callers can make large, many or slow. A zero field means the
// default in its comment. A negative count or rate means no limit.
type Limits struct {
	MaxRecvBytes   int // one message from a caller, default 1 MiB
	MaxSendBytes   int // one message to a caller, default 16 MiB; a page takes at most 3 MiB or half of this
	MaxHeaderBytes int // headers of a call, default 16 KiB
	// MaxInFlightBytes limits the bytes of running requests of all callers. The default
	// is 32 MiB. In memory they can take some sixty times that.
	MaxInFlightBytes int
	// MaxConnections limits connections at once, by default to 4,096, and
	// MaxConnectionsPerAddress those from one IP address, to 2,560. The last tenth of
	// both is for admins. Past the rest, the token or certificate with the most loses
	// one on which no call runs.
	MaxConnections, MaxConnectionsPerAddress int
	// MaxStrangers limits the connections at once on which no call has shown a token or
	// certificate. The default is 1,024, and 512 from one address. Past the limit, one of them is
	// closed. On a server without tokens, any call except a health check suffices.
	MaxStrangers, MaxStrangersPerAddress int
	StrangerIdle                         time.Duration // time without a call or health check after which a stranger is closed, default 1 min
	MaxHealthWatches                     int           // health watches at once, default 256
	MaxHealthWatchesPerAddress           int           // and from one address, default 32

	MaxStreams          int     // calls at once on one connection, default 128
	MaxInFlight         int     // calls at once with streams but without health checks, default 4,096; the last tenth is for admins
	MaxInFlightPerToken int     // with one token or certificate, default 1,024
	MaxInFlightPerStudy int     // to one study without streams, default 2,048
	MaxWatches          int     // Watch streams at once, default 1,000; the last tenth is for admins
	MaxWatchesPerToken  int     // with one token or certificate, default 200
	MaxWatchesPerStudy  int     // of one study, default 500
	MaxBackups          int     // backups at once, default 2
	Rate                float64 // calls a second with one token or certificate, default 200
	Burst               int     // calls in a burst, default 400
	// WriteRate limits the bytes a second of mutating requests with one token or
	// certificate. The default is 2 MiB, with bursts of 16 times that.
	WriteRate float64

	AuthFailureRate float64       // failed authentications a second from one IP address, default 5
	ConnectTimeout  time.Duration // for the TLS and HTTP/2 handshakes, default 10 s
	CallTimeout     time.Duration // of a call without its own, default 30 s
	AskTimeout      time.Duration // of an ask without its own, default 60 s
	MinPingInterval time.Duration // callers that ping more often are cut off, default 20 s
	PingInterval    time.Duration // after which the server pings a silent connection, default 60 s
	PingTimeout     time.Duration // after which it is closed without an answer, default 20 s
	MaxIdle         time.Duration // time without calls after which a connection is closed, default 15 min
	MaxAge          time.Duration // age at which a connection is asked to make way for a new one, default 30 min
	MaxAgeGrace     time.Duration // after which it is closed, default 30 s

	maxMemory int64 // of Options.Memory, for messages
}

func (o Options) withDefaults() Options {
	o.Address = cmp.Or(o.Address, DefaultAddress)
	o.StopTimeout = cmp.Or(o.StopTimeout, 10*time.Second)
	o.DrainDelay = cmp.Or(o.DrainDelay, 250*time.Millisecond)
	o.Limits = o.Limits.withDefaults()
	o.Limits.maxMemory = o.Memory.Bytes()
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Registry == nil {
		o.Registry = prometheus.NewRegistry()
		o.Registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	}
	return o
}

// DefaultLimits are the defaults of [Limits].
var DefaultLimits = Limits{
	MaxRecvBytes: 1 << 20, MaxSendBytes: 16 << 20, MaxHeaderBytes: 16 << 10, MaxInFlightBytes: 32 << 20,
	MaxConnections: 4096, MaxConnectionsPerAddress: 2560, MaxStrangers: 1024, MaxStrangersPerAddress: 512, StrangerIdle: time.Minute,
	MaxHealthWatches: 256, MaxHealthWatchesPerAddress: 32,
	MaxStreams: 128, MaxInFlight: 4096, MaxInFlightPerToken: 1024, MaxInFlightPerStudy: 2048,
	MaxWatches: 1000, MaxWatchesPerToken: 200, MaxWatchesPerStudy: 500, MaxBackups: 2,
	Rate: 200, Burst: 400, WriteRate: 2 << 20, AuthFailureRate: 5,
	ConnectTimeout: 10 * time.Second, CallTimeout: 30 * time.Second, AskTimeout: time.Minute,
	MinPingInterval: 20 * time.Second, PingInterval: time.Minute, PingTimeout: 20 * time.Second,
	MaxIdle: 15 * time.Minute, MaxAge: 30 * time.Minute, MaxAgeGrace: 30 * time.Second,
}

func (l Limits) withDefaults() Limits {
	v, d := reflect.ValueOf(&l).Elem(), reflect.ValueOf(DefaultLimits)
	for i := range v.NumField() {
		if f := v.Field(i); f.CanSet() && f.IsZero() {
			f.Set(d.Field(i))
		}
	}
	return l
}

// Validate reports all errors in the options that it can find without opening files or listening.
func (o Options) Validate() error {
	faults := o.Limits.faults()
	add := func(wrong bool, format string, args ...any) {
		if wrong {
			faults = append(faults, fmt.Errorf(format, args...))
		}
	}
	o = o.withDefaults()
	_, err := parseAddress(o.Address)
	add(err != nil, "Address: %w", err)
	if o.MetricsAddress != "" {
		_, err := parseAddress(o.MetricsAddress)
		add(err != nil, "MetricsAddress: %w", err)
	}
	add((o.CertFile == "") != (o.KeyFile == ""), "CertFile and KeyFile must be given together")
	add(o.ClientCAFile != "" && !o.tls(), "ClientCAFile needs TLS; give CertFile and KeyFile too")
	add(o.AllowTLS12 && !o.tls(), "AllowTLS12 needs TLS; give CertFile and KeyFile too")
	add(len(o.ClientScopes) > 0 && o.ClientCAFile == "", "ClientScopes needs the CA certificate that signed the clients'; give ClientCAFile too")
	add(o.ClientCAFile != "" && len(o.ClientScopes) == 0 && o.TokenFile == "",
		"ClientCAFile alone permits nothing; give ClientScopes or TokenFile too")
	for _, name := range slices.Sorted(maps.Keys(o.ClientScopes)) {
		err := o.ClientScopes[name].Validate()
		add(err != nil, "ClientScopes: certificate %q: %w", name, err)
		add(name == "" || len(name) > maxCertificateName || !utf8.ValidString(name), "ClientScopes: certificate %q: its name must be UTF-8 of 1 to %d bytes", name, maxCertificateName)
	}
	add(o.StopTimeout < 0, "StopTimeout %s: must not be negative", o.StopTimeout)
	add(o.DrainDelay < 0, "DrainDelay %s: must not be negative", o.DrainDelay)
	if err := errors.Join(faults...); err != nil {
		return &OptionError{err}
	}
	return nil
}

// OptionError refuses [Options]. It names their fields, so that a command
// can name its flags instead.
type OptionError struct{ err error }

func optionError(format string, args ...any) error {
	return &OptionError{fmt.Errorf(format, args...)}
}

func (e *OptionError) Error() string { return e.err.Error() }

func (e *OptionError) Unwrap() error { return e.err }

// maxCertificateName is the most bytes of a certificate's name. Events store the name.
const maxCertificateName = 256

// faults names the limits that are negative although only a count or a rate may be.
func (l Limits) faults() (faults []error) {
	v := reflect.ValueOf(l)
	for i := range v.NumField() {
		name, isTime := v.Type().Field(i).Name, v.Field(i).Type() == reflect.TypeFor[time.Duration]()
		if (isTime || slices.Contains([]string{"MaxRecvBytes", "MaxSendBytes", "MaxHeaderBytes"}, name)) && v.Field(i).Int() < 0 {
			faults = append(faults, fmt.Errorf("%s must not be negative", "Limits."+name))
		}
	}
	return faults
}

func (o Options) tls() bool { return o.CertFile != "" || o.KeyFile != "" }

// closed reports whether callers must identify themselves.
func (o Options) closed() bool { return o.TokenFile != "" || o.ClientCAFile != "" }
