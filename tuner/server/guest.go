package server

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"

	"google.golang.org/grpc"
	"google.golang.org/grpc/tap"
)

// Guest is a gRPC service of another protocol whose clients can neither show a token nor
// use TLS, such as Optuna's storage. Its calls have the limits on connections, calls and
// bytes, the log lines and the metrics of other calls.
type Guest struct {
	Name    string // of its callers in the log, such as "optuna"
	Service *grpc.ServiceDesc
	Handler any // implements the service
	// Subject names what a call changed, for the audit. It returns "" for a call that
	// changes nothing.
	Subject func(request, answer any) string
}

// guest is a guest with its gRPC server.
type guest struct {
	Guest
	grpc     *grpc.Server
	listener net.Listener
	methods  map[string]bool
}

// Host serves a guest on a listener of [Server.ListenGuest] while the server serves. It
// must be called before [Server.Serve], which closes the listener.
func (s *Server) Host(g Guest, l net.Listener) error {
	if s.served.Load() {
		return errors.New("a guest must be hosted before the server serves")
	}
	if err := s.checkGuest(l.Addr().String(), remote(l)); err != nil {
		return err
	}
	hosted := &guest{Guest: g, listener: l, methods: make(map[string]bool)}
	for _, m := range g.Service.Methods {
		method := "/" + g.Service.ServiceName + "/" + m.MethodName
		if s.permissions[method] != 0 {
			return fmt.Errorf("the method %s is served already", method)
		}
		hosted.methods[method] = true
	}
	for method := range hosted.methods {
		s.permissions[method] = needAny
	}
	options := append(s.connectionOptions(), s.callOptions()...)
	hosted.grpc = grpc.NewServer(append(options,
		grpc.MaxSendMsgSize(math.MaxInt32), // an answer can have a whole study
		grpc.InTapHandle(func(ctx context.Context, info *tap.Info) (context.Context, error) {
			return s.gate(context.WithValue(ctx, guestKey{}, hosted), info)
		}),
	)...)
	hosted.grpc.RegisterService(g.Service, g.Handler)
	s.guests = append(s.guests, hosted)
	return nil
}

type guestKey struct{}

// guestOf returns the guest that a call is for, or nil.
func guestOf(ctx context.Context) *guest {
	g, _ := ctx.Value(guestKey{}).(*guest)
	return g
}

// guestIdentity is the identity of the callers of a guest, who are not known.
func guestIdentity(g *guest) identity { return identity{name: g.Name} }

// ListenGuest listens on an address for a guest. Nothing protects a guest, so it refuses
// to listen where other machines could reach it, unless Options.InsecureAllowRemote is
// set.
func (s *Server) ListenGuest(where string) (net.Listener, error) {
	a, err := parseAddress(where)
	if err != nil {
		return nil, err
	}
	if err := s.checkGuest(where, a.remote); err != nil {
		return nil, err
	}
	return a.listen()
}

// checkGuest refuses to serve a guest to other machines.
func (s *Server) checkGuest(where string, remote bool) error {
	if !remote {
		return nil
	}
	if s.options.InsecureAllowRemote {
		s.metrics.insecure.Set(1)
		s.log.Warn("INSECURE: other machines can reach a service without encryption and authentication", "address", where)
		return nil
	}
	return optionError("GuestAddress: refusing to listen on %s, because other machines can reach it and its clients have neither TLS nor tokens; listen on 127.0.0.1 and use a tunnel, or allow it with InsecureAllowRemote", where)
}
