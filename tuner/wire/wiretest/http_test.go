package wiretest_test

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	spb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	pb "github.com/bkbtuner/bkb/proto/tuner/v1"
	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/server"
	"github.com/bkbtuner/bkb/tuner/web"
)

// serveHTTP serves a service over HTTP, and gRPC that is translated to it. It returns the
// address for gRPC. So the client, and all that is held against it, tries the HTTP face.
func serveHTTP(t testing.TB, service tuner.Service, o server.Options) string {
	t.Helper()
	o.Address = "127.0.0.1:0"
	s, err := server.New(service, o)
	if err != nil {
		t.Fatal(err)
	}
	face, err := web.New(s, web.Options{Version: "test"})
	if err != nil {
		t.Fatal(err)
	}
	h, g := listen(t), listen(t)
	transport := &http.Transport{MaxIdleConnsPerHost: 100}
	gateway := grpc.NewServer(grpc.MaxRecvMsgSize(16<<20), grpc.UnknownServiceHandler(func(_ any, stream grpc.ServerStream) error {
		return translate(stream, &http.Client{Transport: transport}, "http://"+h.Addr().String())
	}))
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 3)
	go func() { ended <- s.Serve(ctx, nil) }()
	go func() { ended <- face.Serve(h) }()
	go func() { ended <- gateway.Serve(g) }()
	t.Cleanup(func() {
		gateway.Stop()
		cancel()
		if err := face.Close(); err != nil {
			t.Error(err)
		}
		for range 3 {
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}
		transport.CloseIdleConnections()
	})
	return g.Addr().String()
}

// translate makes a call over HTTP of one over gRPC.
func translate(stream grpc.ServerStream, client *http.Client, to string) error {
	path, _ := grpc.MethodFromServerStream(stream)
	method := pb.File_proto_tuner_v1_tuner_proto.Services().ByName("Tuner").Methods().ByName(protoreflect.Name(path[strings.LastIndexByte(path, '/')+1:]))
	request, answer := messageOf(method.Input()), messageOf(method.Output())
	if err := stream.RecvMsg(request); err != nil {
		return err
	}
	body, err := protojson.Marshal(request)
	if err != nil {
		return err
	}
	q, err := http.NewRequestWithContext(stream.Context(), http.MethodPost, to+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	q.Header.Set("Content-Type", "application/json")
	res, err := client.Do(q)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		text, err := io.ReadAll(res.Body)
		if err != nil {
			return err
		}
		return failure(text)
	}
	if !method.IsStreamingServer() {
		text, err := io.ReadAll(res.Body)
		if err != nil {
			return err
		}
		if err := protojson.Unmarshal(text, answer); err != nil {
			return err
		}
		return stream.SendMsg(answer)
	}
	lines := bufio.NewReader(res.Body)
	for {
		line, err := lines.ReadString('\n')
		if err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
		line = strings.TrimSpace(line)
		if inner, ok := strings.CutPrefix(line, `{"error":`); ok {
			return failure([]byte(strings.TrimSuffix(inner, "}")))
		}
		if inner, ok := strings.CutPrefix(line, `{"result":`); ok {
			answer := messageOf(method.Output())
			if err := protojson.Unmarshal([]byte(strings.TrimSuffix(inner, "}")), answer); err != nil {
				return err
			}
			if err := stream.SendMsg(answer); err != nil {
				return err
			}
		}
	}
}

func messageOf(d protoreflect.MessageDescriptor) proto.Message {
	t, err := protoregistry.GlobalTypes.FindMessageByName(d.FullName())
	if err != nil {
		panic(err)
	}
	return t.New().Interface()
}

func failure(text []byte) error {
	var s spb.Status
	if err := protojson.Unmarshal(text, &s); err != nil {
		return err
	}
	return status.ErrorProto(&s)
}

// address is where a service is served over gRPC.
func address(t testing.TB, service tuner.Service, o server.Options) string {
	l := listen(t)
	serve(t, service, o, l)
	return l.Addr().String()
}
