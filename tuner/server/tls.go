package server

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"slices"
	"sync"

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

// watched holds a value loaded from files, and loads it again when one of them changes.
type watched[T any] struct {
	paths  []string
	load   func() (T, error)
	failed func(error) // called once for each state of the files that cannot be loaded

	mu     sync.Mutex
	stamps []os.FileInfo // when the files were last loaded; nil for a missing file
	value  T
}

// newWatched loads the files for the first time.
func newWatched[T any](load func() (T, error), failed func(error), paths ...string) (*watched[T], error) {
	w := &watched[T]{paths: paths, load: load, failed: failed}
	w.stamps = w.look()
	var err error
	w.value, err = load()
	return w, err
}

// get returns the value of the files as they are, or the last valid one.
func (w *watched[T]) get() T {
	w.mu.Lock()
	defer w.mu.Unlock()
	stamps := w.look()
	if same(stamps, w.stamps) {
		return w.value
	}
	w.stamps = stamps // from before the load, so that the next call sees a change during it
	value, err := w.load()
	if err != nil {
		w.failed(err)
		return w.value
	}
	w.value = value
	return value
}

func (w *watched[T]) look() []os.FileInfo {
	stamps := make([]os.FileInfo, len(w.paths))
	for i, path := range w.paths {
		stamps[i], _ = os.Stat(path) // load returns the error
	}
	return stamps
}

func same(a, b []os.FileInfo) bool {
	return slices.EqualFunc(a, b, func(a, b os.FileInfo) bool {
		if a == nil || b == nil {
			return a == b
		}
		return os.SameFile(a, b) && a.Size() == b.Size() && a.ModTime().Equal(b.ModTime()) && a.Mode() == b.Mode()
	})
}
