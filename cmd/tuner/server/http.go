package server

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/bkbtuner/bkb/cmd/tuner/cli"
	"github.com/bkbtuner/bkb/tuner/server"
	"github.com/bkbtuner/bkb/tuner/web"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// httpFace are the flags of a server for callers over HTTP and for the program that
// started it.
type httpFace struct {
	address  string
	noUI     bool
	ready    string // file
	untilEOF bool

	cmd      *cobra.Command
	stop     func(error)
	state    Readiness
	written  bool // the ready file
	face     *web.Face
	listener net.Listener
	served   chan struct{} // closed when the face has ended; nil before it serves
}

func (h *httpFace) flags(f *pflag.FlagSet) {
	f.StringVar(&h.address, "http", "", "`host:port` or unix:path for the page and JSON over HTTP")
	f.BoolVar(&h.noUI, "no-ui", false, "JSON over HTTP without the page")
	f.BoolVar(&h.untilEOF, "until-eof", false, "stop when stdin ends")
	f.StringVar(&h.ready, "ready-file", "", "JSON `file` of addresses while the server runs")
}

// check refuses flags that do not fit, and a ready file that cannot be written.
func (h *httpFace) check() error {
	if h.noUI && h.address == "" {
		return cli.Usagef("--no-ui: has no effect without --http; leave it out")
	}
	if h.address != "" {
		if err := server.CheckAddress(h.address); err != nil {
			return cli.Usagef("--http: %w", err)
		}
	}
	if folder := filepath.Dir(h.ready); h.ready != "" && !cli.IsDir(folder) {
		return cli.Exit(cli.ExitNotFound, fmt.Errorf("--ready-file %s: there is no directory %s; make it first", h.ready, folder))
	}
	return nil
}

// addresses are where the server listens besides --listen.
func (h *httpFace) addresses() []string {
	if h.address == "" {
		return nil
	}
	return []string{h.address}
}

// open prepares the face and the ready file of a server, before the server serves. The
// caller holds the lock of the database, so the ready file of another server is never
// removed. stop ends the server, with an error or nil.
func (h *httpFace) open(cmd *cobra.Command, srv *server.Server, listening *server.Opened, optuna string, stop func(error)) (err error) {
	h.cmd, h.stop = cmd, stop
	h.state = Readiness{PID: os.Getpid(), Version: cli.ModuleVersion(), GRPC: addressText(listening.Listener), Optuna: optuna, TLS: srv.Options().CertFile != ""}
	if listening.Metrics != nil {
		h.state.Metrics = addressText(listening.Metrics)
	}
	if h.ready != "" {
		if err := removeReady(h.ready); err != nil {
			return err
		}
	}
	if h.address == "" {
		return nil
	}
	if h.face, err = web.New(srv, web.Options{Version: h.state.Version, Page: !h.noUI}); err != nil {
		return err
	}
	h.listener = listening.Further[0]
	h.state.HTTP = addressText(h.listener)
	return nil
}

// note is the line about HTTP beside the one about gRPC.
func (h *httpFace) note() string {
	if h.listener == nil {
		return ""
	}
	return "\nListening for HTTP on " + h.state.HTTP
}

// serve begins all of it when the server begins to serve.
func (h *httpFace) serve() {
	if h.face != nil {
		h.served = make(chan struct{})
		go func() {
			defer close(h.served)
			if err := h.face.Serve(h.listener); err != nil {
				h.stop(fmt.Errorf("HTTP: %w", err))
			}
		}()
	}
	if h.untilEOF {
		// stderr may be a pipe to the program whose end is to stop this one.
		signal.Ignore(syscall.SIGPIPE)
		go func() {
			_, _ = io.Copy(io.Discard, h.cmd.InOrStdin()) // a stdin that cannot be read has ended
			h.stop(nil)
		}()
	}
	if h.ready != "" {
		if err := h.state.write(h.ready); err != nil {
			h.stop(fmt.Errorf("--ready-file: %w", err))
		} else {
			h.written = true
		}
	}
}

// close ends all of it once the server has stopped.
func (h *httpFace) close() error {
	var faults []error
	if h.served != nil {
		faults = append(faults, h.face.Close())
		<-h.served
	}
	if h.written {
		if err := os.Remove(h.ready); err != nil && !errors.Is(err, fs.ErrNotExist) {
			faults = append(faults, fmt.Errorf("--ready-file: %w", err))
		}
	}
	return errors.Join(faults...)
}

// Readiness is what the ready file holds. Its form is an interface.
type Readiness struct {
	PID     int    `json:"pid"`
	Version string `json:"version"`
	GRPC    string `json:"grpc"`           // host:port or unix:path
	HTTP    string `json:"http,omitempty"` // likewise
	Optuna  string `json:"optuna,omitempty"`
	Metrics string `json:"metrics,omitempty"`
	TLS     bool   `json:"tls"`
}

// removeReady removes a ready file that another server left behind, and no other file.
func removeReady(path string) error {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return fmt.Errorf("--ready-file: %w", err)
	}
	var old Readiness
	if json.Unmarshal(text, &old) != nil || old.PID == 0 {
		return cli.Usagef("--ready-file %s exists and is no ready file; remove it, or name another file", path)
	}
	return os.Remove(path)
}

// write puts the file in place as a whole.
func (r Readiness) write(path string) (err error) {
	data, err := json.Marshal(r)
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*.tmp") // mode 0600
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(f.Name()))
		}
	}()
	_, err = f.Write(append(data, '\n'))
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

// addressText is where a listener listens, as --listen and --server have it.
func addressText(l net.Listener) string {
	if l.Addr().Network() == "unix" {
		return "unix:" + l.Addr().String()
	}
	return l.Addr().String()
}
