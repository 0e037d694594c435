// Protogen compiles .proto files and runs protoc-gen-go, protoc-gen-go-grpc and
// protoc-gen-go-vtproto on them. It needs only Go, because protocompile replaces protoc, and
// the plugins are tools of this module. Files are named from the root of the repository.
//
//	go -C tools run ./protogen [-grpc] [-fast] [-out dir] dir/file.proto ...
//
// Output is written beside the input, or below -out.
package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/bufbuild/protocompile"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/pluginpb"
)

// root is the root of the repository.
const root = ".."

func main() {
	grpc := flag.Bool("grpc", false, "generate the gRPC service too")
	fast := flag.Bool("fast", false, "generate decoders without reflection too, which reuse messages and share the input's memory")
	out := flag.String("out", root, "directory below which the output is written")
	flag.Parse()
	if err := run(*out, *grpc, *fast, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "protogen:", err)
		os.Exit(1)
	}
}

func run(out string, grpc, fast bool, files []string) error {
	if len(files) == 0 {
		return fmt.Errorf("name at least one .proto file")
	}
	request, err := compile(files)
	if err != nil {
		return err
	}
	plugins := []string{"protoc-gen-go"}
	if grpc {
		plugins = append(plugins, "protoc-gen-go-grpc")
	}
	for _, plugin := range plugins {
		if err := generate(plugin, request, out); err != nil {
			return fmt.Errorf("%s: %w", plugin, err)
		}
	}
	if !fast {
		return nil
	}
	parameter := request.GetParameter() + ",features=pool+unmarshal_unsafe"
	for _, f := range request.ProtoFile {
		for _, m := range f.MessageType {
			parameter += fmt.Sprintf(",pool=%s.%s", f.GetOptions().GetGoPackage(), m.GetName())
		}
	}
	request.Parameter = &parameter
	if err := generate("protoc-gen-go-vtproto", request, out); err != nil {
		return fmt.Errorf("protoc-gen-go-vtproto: %w", err)
	}
	return nil
}

// compile returns the plugins' request for the files, their imports first.
func compile(files []string) (*pluginpb.CodeGeneratorRequest, error) {
	c := protocompile.Compiler{
		Resolver:       protocompile.WithStandardImports(&protocompile.SourceResolver{ImportPaths: []string{root}}),
		SourceInfoMode: protocompile.SourceInfoStandard,
	}
	compiled, err := c.Compile(context.Background(), files...)
	if err != nil {
		return nil, err
	}
	request := &pluginpb.CodeGeneratorRequest{
		FileToGenerate: files,
		Parameter:      proto.String("paths=source_relative"),
	}
	seen := make(map[string]bool)
	var add func(f protoreflect.FileDescriptor)
	add = func(f protoreflect.FileDescriptor) {
		if seen[f.Path()] {
			return
		}
		seen[f.Path()] = true
		for i := range f.Imports().Len() {
			add(f.Imports().Get(i).FileDescriptor)
		}
		request.ProtoFile = append(request.ProtoFile, describe(f))
	}
	for _, f := range compiled {
		add(f)
	}
	return request, nil
}

// describe returns a file's descriptor with its comments, if there are any.
func describe(f protoreflect.FileDescriptor) *descriptorpb.FileDescriptorProto {
	if own, ok := f.(interface {
		FileDescriptorProto() *descriptorpb.FileDescriptorProto
	}); ok {
		return own.FileDescriptorProto()
	}
	return protodesc.ToFileDescriptorProto(f)
}

func generate(plugin string, request *pluginpb.CodeGeneratorRequest, out string) error {
	in, err := proto.Marshal(request)
	if err != nil {
		return err
	}
	cmd := exec.Command("go", "tool", plugin)
	cmd.Stdin = bytes.NewReader(in)
	cmd.Stderr = os.Stderr
	answer, err := cmd.Output()
	if err != nil {
		return err
	}
	var response pluginpb.CodeGeneratorResponse
	if err := proto.Unmarshal(answer, &response); err != nil {
		return err
	}
	if response.Error != nil {
		return fmt.Errorf("%s", response.GetError())
	}
	for _, f := range response.File {
		path := filepath.Join(out, filepath.FromSlash(f.GetName()))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(f.GetContent()), 0o644); err != nil {
			return err
		}
	}
	return nil
}
