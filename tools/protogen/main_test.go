package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestGeneratedIsCurrent regenerates the code of every .proto file of the module and
// compares it with the committed code.
func TestGeneratedIsCurrent(t *testing.T) {
	t.Chdir("..") // to the folder of the module
	files := protoFiles(t)
	if len(files) == 0 {
		t.Fatal("found no .proto file")
	}
	for _, file := range files {
		t.Run(file, func(t *testing.T) {
			base := strings.TrimSuffix(file, ".proto")
			_, err := os.Stat(filepath.Join(root, base+"_grpc.pb.go"))
			_, fastErr := os.Stat(filepath.Join(root, base+"_vtproto.pb.go"))
			grpc, fast, out := err == nil, fastErr == nil, t.TempDir()
			if err := run(out, grpc, fast, []string{file}); err != nil {
				t.Fatal(err)
			}
			compare(t, base+".pb.go", out)
			if grpc {
				compare(t, base+"_grpc.pb.go", out)
			}
			if fast {
				compare(t, base+"_vtproto.pb.go", out)
			}
		})
	}
}

func protoFiles(t *testing.T) []string {
	var files []string
	err := fs.WalkDir(os.DirFS(root), ".", func(path string, d fs.DirEntry, err error) error {
		if err == nil && filepath.Ext(path) == ".proto" {
			files = append(files, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func compare(t *testing.T, file, out string) {
	have, err := os.ReadFile(filepath.Join(root, file))
	if err != nil {
		t.Error(err)
		return
	}
	want, err := os.ReadFile(filepath.Join(out, file))
	if err != nil {
		t.Error(err)
		return
	}
	if string(have) != string(want) {
		t.Errorf("%s is stale: run make generate", file)
	}
}

func TestRunRefuses(t *testing.T) {
	broken := filepath.Join(t.TempDir(), "broken.proto")
	if err := os.WriteFile(broken, []byte("syntax = \"proto3\";\nmessage {}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, files := range map[string][]string{
		"no file":      nil,
		"missing file": {"nowhere.proto"},
		"broken file":  {broken},
	} {
		if err := run(t.TempDir(), false, false, files); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
