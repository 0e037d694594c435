package client

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/bkbtuner/bkb/tuner/wire"
)

// Options configure the connection of a [Client]. The zero Options are TLS with the
// system's roots and no token.
type Options struct {
	// CAFile is a PEM file with the CA certificate that signed the server's. Empty means
	// the system's roots.
	CAFile string
	// ServerName is the name that the certificate must have. Empty means the host of the
	// address.
	ServerName string
	// CertFile and KeyFile are PEM files with the client certificate and its key.
	CertFile, KeyFile string
	// Plaintext turns TLS off. Tokens are then sent only to this machine.
	Plaintext bool
	// Token identifies the caller. The zero Token is none. See [wire.ReadToken].
	Token wire.Token
	// TraceParent is the W3C Trace Context of calls, for the logs of the server. A server
	// that calls another one sends on that of its own caller instead. A malformed one is
	// not sent.
	TraceParent string
	// RetryFor is the longest time for which a call is sent again while its outcome is
	// unknown or the server is unreachable. 0 means one minute, and calls are sent once if
	// it is negative. The context of a call can end it earlier. Errors that waiting does
	// not change, such as those of certificates, end a call at once.
	RetryFor time.Duration
	// OnTrouble, if not nil, is called when a call could not reach the server for two
	// seconds and will be tried again. It is called once until a call succeeds.
	OnTrouble func(Trouble)
	// MaxRecvBytes and MaxSendBytes are the most bytes of a message. 0 means 16 MiB and
	// 1 MiB, as the defaults of the server.
	MaxRecvBytes, MaxSendBytes int
	// PingInterval is the time between pings on a silent connection with calls in
	// progress. 0 means 30 s. By default a server does not accept less than 20 s.
	PingInterval time.Duration
}

func (o Options) withDefaults() Options {
	o.RetryFor = cmp.Or(o.RetryFor, time.Minute)
	o.MaxRecvBytes, o.MaxSendBytes = cmp.Or(o.MaxRecvBytes, 16<<20), cmp.Or(o.MaxSendBytes, 1<<20)
	o.PingInterval = cmp.Or(o.PingInterval, 30*time.Second)
	return o
}

// Validate reports everything that is wrong with the options, as far as can be
// said without opening files or connections.
func (o Options) Validate() error {
	var faults []error
	add := func(wrong bool, text string) {
		if wrong {
			faults = append(faults, errors.New(text))
		}
	}
	add((o.CertFile == "") != (o.KeyFile == ""), "a certificate and its key are given together or not at all")
	add(o.Plaintext && (o.CAFile != "" || o.CertFile != "" || o.ServerName != ""), "certificates and server names mean nothing without TLS")
	add(o.MaxRecvBytes < 0 || o.MaxSendBytes < 0, "message sizes must not be negative")
	add(o.PingInterval < 0, "the ping interval must not be negative")
	return errors.Join(faults...)
}

func (o Options) tlsConfig() (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: o.ServerName}
	if o.CAFile != "" {
		pem, err := os.ReadFile(o.CAFile)
		if err != nil {
			return nil, err
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("%s has no PEM certificate; name a file with one", o.CAFile)
		}
	}
	if o.CertFile != "" {
		if err := wire.CheckKey(o.KeyFile); err != nil {
			return nil, err
		}
		cert, err := tls.LoadX509KeyPair(o.CertFile, o.KeyFile)
		if err != nil {
			return nil, fmt.Errorf("certificate %s with key %s: %w", o.CertFile, o.KeyFile, err)
		}
		// A client that lives long shows the certificate that is in the files by then.
		config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			if now, err := tls.LoadX509KeyPair(o.CertFile, o.KeyFile); err == nil {
				return &now, nil
			}
			return &cert, nil
		}
	}
	return config, nil
}
