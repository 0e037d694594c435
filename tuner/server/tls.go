package server

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"

	"github.com/bkbtuner/bkb/tuner/wire"
)

// tlsConfig uses the present certificates, and is nil if TLS is off.
func (s *Server) tlsConfig() (*tls.Config, error) {
	if !s.options.tls() {
		return nil, nil
	}
	paths := []string{s.options.CertFile, s.options.KeyFile}
	if s.options.ClientCAFile != "" {
		paths = append(paths, s.options.ClientCAFile)
	}
	files, err := newWatched(s.options.loadTLS, func(err error) {
		s.log.Error("reloading the certificates failed, so the old ones stay in use", "error", err)
	}, paths...)
	if err != nil {
		return nil, err
	}
	return &tls.Config{
		MinVersion:         s.options.minTLS(),
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return files.get(), nil },
	}, nil
}

func (o Options) minTLS() uint16 {
	if o.AllowTLS12 {
		return tls.VersionTLS12
	}
	return tls.VersionTLS13
}

// loadTLS reads the certificate, its key and the client CA certificates.
func (o Options) loadTLS() (*tls.Config, error) {
	if err := wire.CheckKey(o.KeyFile); err != nil {
		return nil, err
	}
	cert, err := tls.LoadX509KeyPair(o.CertFile, o.KeyFile)
	if err != nil {
		return nil, fmt.Errorf("certificate %s with key %s: %w", o.CertFile, o.KeyFile, err)
	}
	config := &tls.Config{MinVersion: o.minTLS(), Certificates: []tls.Certificate{cert}}
	if o.ClientCAFile == "" {
		return config, nil
	}
	pem, err := os.ReadFile(o.ClientCAFile)
	if err != nil {
		return nil, err
	}
	config.ClientCAs = x509.NewCertPool()
	if !config.ClientCAs.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%s contains no PEM certificate", o.ClientCAFile)
	}
	config.ClientAuth = tls.RequireAndVerifyClientCert
	if o.TokenFile != "" && len(o.ClientScopes) > 0 {
		config.ClientAuth = tls.VerifyClientCertIfGiven
	}
	return config, nil
}
