package server_test

import (
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"

	pb "github.com/bkbtuner/bkb/proto/tuner/v1"
	"github.com/bkbtuner/bkb/tuner/server"
	"github.com/bkbtuner/bkb/tuner/wire/wiretest"
)

// TestSilentConnection checks that silent connections, and those with half a handshake,
// do not delay the stop.
func TestSilentConnection(t *testing.T) {
	for name, test := range map[string]struct {
		says    string
		timeout time.Duration
	}{
		"nothing":          {"", time.Hour},
		"half a handshake": {"PRI * HTTP/2.0\r\n", 100 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			r := start(t, withStudies(t), server.Options{StopTimeout: test.timeout})
			for range 3 {
				conn, err := net.Dial("tcp", r.address)
				if err != nil {
					t.Fatal(err)
				}
				defer conn.Close()
				if _, err := conn.Write([]byte(test.says)); err != nil {
					t.Fatal(err)
				}
			}
			time.Sleep(50 * time.Millisecond) // until they are accepted
			stopped := make(chan struct{})
			go func() {
				r.stop()
				close(stopped)
			}()
			select {
			case <-stopped:
			case <-time.After(time.Minute):
				t.Fatal("it does not stop")
			}
		})
	}
}

// garbled is a codec whose requests no server can decode.
type garbled struct{ encoding.CodecV2 }

func (garbled) Marshal(any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer("\xff\xff\xff")}, nil
}

// TestUnreadableRequest checks that an undecodable message is an error of the caller.
// The error has an id that the log has too.
func TestUnreadableRequest(t *testing.T) {
	var log syncBuffer
	r := start(t, withStudies(t), server.Options{Logger: log.logger()})
	conn := r.connect(t)
	call := grpc.ForceCodecV2(garbled{encoding.GetCodecV2("proto")})
	_, err := pb.NewTunerClient(conn).Tell(t.Context(), &pb.TellRequest{}, call)
	if s := status.Convert(err); s.Code() != codes.InvalidArgument || !strings.Contains(s.Message(), "error id ") {
		t.Errorf("Tell of garbage: %v", err)
	} else if _, id, _ := strings.Cut(s.Message(), "error id "); !strings.Contains(log.String(), strings.TrimSuffix(id, ")")) {
		t.Errorf("the log has no %s", id)
	}
	watch, err := pb.NewTunerClient(conn).Watch(t.Context(), &pb.WatchRequest{}, call)
	if err == nil {
		_, err = watch.Recv()
	}
	if status.Code(err) != codes.InvalidArgument {
		t.Errorf("Watch of garbage: %v", err)
	}
	if got := get(t.Context(), conn); got != codes.OK {
		t.Errorf("afterwards: %s", got)
	}
}

// TestKeyMode checks that a key which others can read is refused, with the remedy.
func TestKeyMode(t *testing.T) {
	p := wiretest.NewAuthority(t).Issue(t, "server", "127.0.0.1")
	o := server.Options{Address: "127.0.0.1:0", CertFile: p.CertFile, KeyFile: p.KeyFile}
	for mode, fine := range map[os.FileMode]bool{0o600: true, 0o400: true, 0o644: false, 0o640: false, 0o604: false, 0o602: false} {
		if err := os.Chmod(p.KeyFile, mode); err != nil {
			t.Fatal(err)
		}
		opened, err := server.Listen(o)
		if err == nil {
			opened.Close()
		}
		if fine != (err == nil) || !fine && !strings.Contains(err.Error(), "chmod 600 "+p.KeyFile) {
			t.Errorf("a key of mode %04o: %v", mode, err)
		}
	}
}
