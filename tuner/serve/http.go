package serve

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"strings"

	"google.golang.org/grpc"

	"github.com/bkbtuner/bkb/internal/atomicfile"
	"github.com/bkbtuner/bkb/tuner/client"
	"github.com/bkbtuner/bkb/tuner/engine"
	"github.com/bkbtuner/bkb/tuner/mcp"
	"github.com/bkbtuner/bkb/tuner/server"
	"github.com/bkbtuner/bkb/tuner/web"
)

// Ready says where a server serves. It is also the content of the ready file.
type Ready struct {
	PID     int    `json:"pid"`
	Version string `json:"version"`
	GRPC    string `json:"grpc"`           // host:port or unix:path
	HTTP    string `json:"http,omitempty"` // likewise
	Metrics string `json:"metrics,omitempty"`
	TLS     bool   `json:"tls"`
}

// httpFace is the HTTP face of a server, with the ready file.
type httpFace struct {
	config *Config
	stop   func(error)

	ready    Ready
	written  bool // the ready file
	face     *web.Face
	listener net.Listener
	served   chan struct{} // closed when the face has ended; nil before it serves
}

// open prepares the face and the ready file before the server serves. The caller holds the
// lock of the store, so the ready file of another server is never removed.
func (h *httpFace) open(srv *server.Server, listening *server.Opened) (err error) {
	version, _, _ := strings.Cut(h.config.Version, " ") // without the commit
	h.ready = Ready{PID: os.Getpid(), Version: version, GRPC: addressText(listening.Listener), TLS: srv.Options().CertFile != ""}
	if listening.Metrics != nil {
		h.ready.Metrics = addressText(listening.Metrics)
	}
	if h.config.ReadyFile != "" {
		if err := removeReady(h.config.ReadyFile); err != nil {
			return err
		}
	}
	if h.config.HTTP == "" {
		return nil
	}
	agents := func(conn grpc.ClientConnInterface, w http.ResponseWriter, r *http.Request) {
		mcp.Handler(client.Over(conn), mcp.Options{Version: version}).ServeHTTP(w, r)
	}
	if h.face, err = web.New(srv, web.Options{Version: version, Agents: agents, Components: engine.Components(), Page: !h.config.NoPage, Connection: "--server " + reachable(h.ready.GRPC)}); err != nil {
		return err
	}
	h.listener = listening.Further[0]
	h.ready.HTTP = addressText(h.listener)
	return nil
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
	if h.config.OnServing != nil {
		h.config.OnServing(h.ready)
	}
	if h.config.ReadyFile != "" {
		if err := h.ready.write(h.config.ReadyFile); err != nil {
			h.stop(fmt.Errorf("the ready file: %w", err))
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
		if err := os.Remove(h.config.ReadyFile); err != nil && !errors.Is(err, fs.ErrNotExist) {
			faults = append(faults, fmt.Errorf("the ready file: %w", err))
		}
	}
	return errors.Join(faults...)
}

// removeReady removes a ready file that another server left behind, and no other file.
func removeReady(path string) error {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return fmt.Errorf("the ready file: %w", err)
	}
	var old Ready
	if json.Unmarshal(text, &old) != nil || old.PID == 0 {
		return wrong("ReadyFile %s exists and is no ready file; remove it, or name another file", path)
	}
	return os.Remove(path)
}

// write puts the file in place as a whole.
func (r Ready) write(path string) error {
	return atomicfile.Write(path, 0o600, func(w io.Writer) error { return json.NewEncoder(w).Encode(r) })
}

// reachable is an address for the commands that the page shows. The page puts its own host
// in the place of one that means all addresses of the machine.
func reachable(address string) string {
	host, port, err := net.SplitHostPort(address)
	if ip := net.ParseIP(host); err == nil && ip != nil && ip.IsUnspecified() {
		return "{host}:" + port
	}
	return address
}

// addressText is where a listener listens, as Address has it.
func addressText(l net.Listener) string {
	if l.Addr().Network() == "unix" {
		return "unix:" + l.Addr().String()
	}
	return l.Addr().String()
}
