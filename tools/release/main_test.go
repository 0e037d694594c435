package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"
)

var files = []file{
	{name: "tuner", data: []byte("program"), executable: true},
	{name: "LICENSE", data: []byte("terms")},
	{name: "licenses/" + strings.Repeat("long", 30), data: []byte("terms of others")},
}

// An archive does not depend on the order of its files, and says nothing of the machine.
func TestArchives(t *testing.T) {
	mtime := time.Date(2026, 11, 22, 5, 0, 0, 0, time.UTC)
	backwards := slices.Clone(files)
	slices.Reverse(backwards)
	for name, write := range map[string]func(io.Writer, string, time.Time, []file) error{"tar": tarball, "zip": zipped} {
		var a, b bytes.Buffer
		if err := write(&a, "tuner-v1", mtime, files); err != nil {
			t.Fatal(err)
		}
		if err := write(&b, "tuner-v1", mtime.In(time.FixedZone("", 3600)).UTC(), backwards); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(a.Bytes(), b.Bytes()) {
			t.Errorf("%s: the order of the files changes the archive", name)
		}
		if err := write(io.Discard, "x", mtime, append(backwards, files[0])); err == nil {
			t.Errorf("%s: two files of one name were accepted", name)
		}
	}
	var b bytes.Buffer
	if err := tarball(&b, "tuner-v1", mtime, files); err != nil {
		t.Fatal(err)
	}
	z, err := gzip.NewReader(&b)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		names = append(names, h.Name)
		if h.Uid != 0 || h.Gid != 0 || h.Uname != "" || !h.ModTime.Equal(mtime) || (h.Mode == 0o755) != (h.Name == "tuner-v1/tuner") {
			t.Errorf("%s: owner %d:%d %q, time %v, mode %o", h.Name, h.Uid, h.Gid, h.Uname, h.ModTime, h.Mode)
		}
	}
	if !slices.IsSorted(names) || len(names) != 3 {
		t.Errorf("files: %q", names)
	}
	b.Reset()
	if err := zipped(&b, "tuner-v1", mtime, files); err != nil {
		t.Fatal(err)
	}
	r, err := zip.NewReader(bytes.NewReader(b.Bytes()), int64(b.Len()))
	if err != nil || len(r.File) != 3 || !r.File[0].Modified.Equal(mtime) || r.File[2].Mode() != 0o755 {
		t.Errorf("zip: %v", err)
	}
}

// linked returns the build information that cmd/tuner has, without building it.
func linked(t *testing.T, r *release) *buildinfo.BuildInfo {
	t.Helper()
	const format = "{{with .Module}}{{if not .Main}}{{.Path}} {{.Version}}{{end}}{{end}}"
	text, err := output(t.Context(), r.root, nil, "go", "list", "-deps", "-f", format, program)
	if err != nil {
		t.Fatal(err)
	}
	info := &buildinfo.BuildInfo{GoVersion: runtime.Version(), Main: debug.Module{Path: "github.com/bkbtuner/bkb", Version: "v0.1.0"}}
	lines := strings.Split(text, "\n")
	slices.Sort(lines)
	for _, line := range slices.Compact(lines) {
		if path, v, ok := strings.Cut(line, " "); ok {
			info.Deps = append(info.Deps, &debug.Module{Path: path, Version: v, Sum: "h1:sum"})
		}
	}
	if len(info.Deps) < 20 {
		t.Fatalf("%d modules", len(info.Deps))
	}
	return info
}

// Every module in the program has a licence that we know and may ship, and NOTICE names
// the modules whose licence asks for it.
func TestLicences(t *testing.T) {
	r := &release{root: "../.."}
	modules, err := r.modules(t.Context(), linked(t, r))
	if err != nil {
		t.Fatal(err)
	}
	notice, err := os.ReadFile("../../NOTICE")
	if err != nil {
		t.Fatal(err)
	}
	may := []string{"Apache-2.0", "MIT", "BSD-2-Clause", "BSD-3-Clause", "MIT AND Apache-2.0", "BSD-3-Clause AND MIT AND Apache-2.0", "FTL", "OFL-1.1", "CC-BY-4.0"}
	for _, m := range modules {
		named := false
		for _, id := range m.licences {
			if !slices.Contains(may, id) {
				t.Errorf("%s has the licence %s: look at its terms", m.path, id)
			}
			named = named || id == "FTL" || id == "OFL-1.1" || id == "CC-BY-4.0"
		}
		for _, f := range m.texts {
			base := strings.ToUpper(filepath.Base(f.name))
			named = named || strings.HasPrefix(base, "NOTICE") || strings.HasPrefix(base, "COPYRIGHT")
		}
		// A section begins with the path, alone or before a comma.
		if has := regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(m.path) + `(,|$)`).Match(notice); has != named {
			t.Errorf("%s is in NOTICE: %v, want %v", m.path, has, named)
		}
	}
}

// The licences of a program are those of the modules that its build information names.
func TestWriteLicences(t *testing.T) {
	out := t.TempDir()
	r := &release{root: "../..", out: out}
	info := linked(t, r)
	if err := r.writeLicences(t.Context(), info); err != nil {
		t.Fatal(err)
	}
	want := []string{"std@" + strings.TrimPrefix(info.GoVersion, "go")}
	for _, d := range info.Deps {
		want = append(want, d.Path+"@"+d.Version)
	}
	if len(want) < 20 {
		t.Errorf("the program links only %q", want)
	}
	for _, m := range want {
		if found, err := filepath.Glob(filepath.Join(out, m, "*")); err != nil || len(found) == 0 {
			t.Errorf("no licence of %s (%v)", m, err)
		}
	}
	text := filepath.Join(out, want[0], "LICENSE")
	if err := (&release{licences: text, out: out}).run(t.Context()); err == nil || !strings.Contains(err.Error(), "must be a program that Go built") {
		t.Error(err)
	}
	if err := (&module{path: "a.b/c", version: "v1.0.0"}).read("", true); err == nil || err.Error() != "module a.b/c v1.0.0 is not in the module cache: run go mod download" {
		t.Error(err)
	}
}

func TestSPDX(t *testing.T) {
	for text, want := range map[string]string{
		"Permission is hereby granted,\n free of charge":                          "MIT",
		"  Apache License\n Version 2.0, January 2004":                            "Apache-2.0",
		"Redistribution and use in source and binary forms … Neither the name of": "BSD-3-Clause",
		"Redistribution and use in source and binary forms":                       "BSD-2-Clause",
		"GNU GENERAL PUBLIC LICENSE":                                              "",
	} {
		if got := spdx(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func TestSBOM(t *testing.T) {
	r := &release{root: "../.."}
	info := linked(t, r)
	modules, err := r.modules(t.Context(), info)
	if err != nil {
		t.Fatal(err)
	}
	v := version{name: "v0.1.0", time: time.Unix(1800000000, 0).UTC()}
	text, err := sbom(v, info, "linux", "arm64", []byte("program"), modules)
	if err != nil {
		t.Fatal(err)
	}
	var b bom
	if err := json.Unmarshal(text, &b); err != nil {
		t.Fatal(err)
	}
	if len(b.Components) != len(info.Deps)+1 || len(b.Dependencies[0].DependsOn) != len(b.Components) || b.Metadata.Component.Version != "v0.1.0" {
		t.Errorf("%d components of %d modules", len(b.Components), len(info.Deps))
	}
	for _, c := range b.Components {
		if c.URL != "pkg:golang/"+c.Name+"@"+strings.ReplaceAll(c.Version, "+", "%2B") || len(c.Licences) != 1 {
			t.Errorf("component %+v", c)
		}
	}
	again, err := sbom(v, info, "linux", "arm64", []byte("program"), modules)
	if err != nil || !bytes.Equal(text, again) {
		t.Errorf("the SBOM is another one the second time: %v", err)
	}
}

func TestVersionOf(t *testing.T) {
	info := &buildinfo.BuildInfo{Main: debug.Module{Version: "v0.1.0"}, Settings: []debug.BuildSetting{
		{Key: "vcs.time", Value: "2026-11-22T06:00:00+01:00"}, {Key: "vcs.modified", Value: "true"},
	}}
	v, err := versionOf(info)
	if err != nil || v.name != "v0.1.0" || !v.dirty || v.time.Format(time.RFC3339) != "2026-11-22T05:00:00Z" {
		t.Errorf("%+v, %v", v, err)
	}
	if _, err := versionOf(&buildinfo.BuildInfo{Main: debug.Module{Version: "(devel)"}}); err == nil {
		t.Error("a build without a commit was accepted")
	}
}

func TestProvenance(t *testing.T) {
	v := version{name: "v0.1.0", commit: "37fbd46", time: time.Unix(1800000000, 0).UTC()}
	sums := []string{strings.Repeat("a", 64) + "  tuner-linux.tar.gz", strings.Repeat("b", 64) + "  tuner-windows.zip"}
	text, err := provenanceOf(v, targets, "https://ci.example", sums)
	if err != nil {
		t.Fatal(err)
	}
	var s statement
	if err := json.Unmarshal(text, &s); err != nil {
		t.Fatal(err)
	}
	if len(s.Subject) != 2 || s.Subject[1].Name != "tuner-windows.zip" || s.Subject[1].Digest["sha256"] != strings.Repeat("b", 64) {
		t.Errorf("subjects %+v", s.Subject)
	}
	source := s.Predicate.BuildDefinition.ResolvedDependencies
	if len(source) != 1 || source[0].Digest["gitCommit"] != "37fbd46" || s.Predicate.RunDetails.Builder.ID != "https://ci.example" {
		t.Errorf("predicate %+v", s.Predicate)
	}
	if bytes.Count(text, []byte("\n")) != 1 {
		t.Error("a statement is not one line")
	}
}

// has tells whether the machine has a program, and logs it if not.
func has(t *testing.T, name string) bool {
	t.Helper()
	_, err := exec.LookPath(name)
	if err != nil {
		t.Logf("not checked: no %s", name)
	}
	return err == nil
}

// check runs a program that must succeed, and returns what it prints.
func check(t *testing.T, name string, args ...string) string {
	t.Helper()
	text, err := exec.CommandContext(t.Context(), name, args...).CombinedOutput()
	if err != nil {
		t.Errorf("%s %q: %v\n%s", name, args, err, text)
	}
	return string(text)
}

// The image has what its digests say, and they are the same each time.
func TestImage(t *testing.T) {
	v := version{name: "v0.1.0", commit: "37fbd46", time: time.Unix(1800000000, 0).UTC()}
	images := []image{{arch: "amd64", files: files}, {arch: "arm64", files: files[:2]}}
	var b, again bytes.Buffer
	digest, err := layout(&b, v, images)
	if err != nil {
		t.Fatal(err)
	}
	if same, err := layout(&again, v, images); err != nil || same != digest || !bytes.Equal(b.Bytes(), again.Bytes()) {
		t.Errorf("the image is another one the second time: %v", err)
	}
	blobs := make(map[string][]byte)
	for r := tar.NewReader(&again); ; {
		h, err := r.Next()
		if err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		if blobs[h.Name], err = io.ReadAll(r); err != nil {
			t.Fatal(err)
		}
	}
	read := func(d descriptor, into any) []byte {
		data := blobs["blobs/"+strings.Replace(d.Digest, ":", "/", 1)]
		if fmt.Sprintf("sha256:%x", sha256.Sum256(data)) != d.Digest || len(data) != d.Size {
			t.Errorf("%s has %d bytes of another digest", d.Digest, len(data))
		}
		if into != nil {
			if err := json.Unmarshal(data, into); err != nil {
				t.Error(err)
			}
		}
		return data
	}
	var entry, all, manifest index
	if err := json.Unmarshal(blobs["index.json"], &entry); err != nil || entry.Manifests[0].Digest != digest {
		t.Fatalf("index.json: %v", err)
	}
	read(entry.Manifests[0], &all)
	if len(all.Manifests) != 2 || all.Manifests[1].Platform["architecture"] != "arm64" {
		t.Fatalf("manifests %+v", all.Manifests)
	}
	read(all.Manifests[0], &manifest)
	var config struct {
		Rootfs struct {
			Diff []string `json:"diff_ids"`
		} `json:"rootfs"`
	}
	read(*manifest.Config, &config)
	z, err := gzip.NewReader(bytes.NewReader(read(manifest.Layers[0], nil)))
	if err != nil {
		t.Fatal(err)
	}
	plain, err := io.ReadAll(z)
	if err != nil || fmt.Sprintf("sha256:%x", sha256.Sum256(plain)) != config.Rootfs.Diff[0] {
		t.Errorf("the layer is not that of the configuration: %v", err)
	}
	path := filepath.Join(t.TempDir(), "oci.tar")
	if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	if has(t, "skopeo") {
		if text := check(t, "skopeo", "inspect", "oci-archive:"+path); !strings.Contains(text, v.commit) {
			t.Error(text)
		}
		if text := check(t, "skopeo", "inspect", "--raw", "oci-archive:"+path); fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(text))) != digest {
			t.Error("skopeo has another digest than we: " + text)
		}
	}
}

// The recipes have the checksums of the archives, and their tools read them.
func TestRecipes(t *testing.T) {
	r := recipes{Tag: "v0.1.0", Version: "0.1.0", Date: "2026-11-27", Tags: tags, Image: "sha256:" + strings.Repeat("f", 64), sums: make(map[string]string)}
	for i, target := range strings.Fields(targets + " source") {
		system, ending := strings.ReplaceAll(target, "/", "-"), ".tar.gz"
		if strings.HasPrefix(target, "windows") {
			ending = ".zip"
		}
		r.sums[r.Folder(system)+ending] = strings.Repeat(string("abcdef0"[i]), 64)
	}
	out := t.TempDir()
	if err := r.write("../../deploy/package/recipes", out); err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	err := filepath.WalkDir(out, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		all.Write(text)
		if strings.HasSuffix(path, ".yaml") {
			var v map[string]any
			if err := yaml.Unmarshal(text, &v); err != nil {
				t.Errorf("%s: %v", path, err)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for name, sum := range r.sums {
		text := all.String()
		if !strings.Contains(text, "/v0.1.0/"+name) || !strings.Contains(text, sum) && !strings.Contains(text, strings.ToUpper(sum)) {
			t.Errorf("no recipe has %s and its checksum", name)
		}
	}
	if !strings.Contains(all.String(), "digest: "+r.Image) {
		t.Error("no recipe has the digest of the image")
	}
	if has(t, "ruby") {
		check(t, "ruby", "-wc", filepath.Join(out, "homebrew/bkb-tuner.rb"))
	}
	if python := os.Getenv("BKB_RATTLER"); python == "" {
		t.Log("not checked: no py-rattler-build in a Python at $BKB_RATTLER")
	} else {
		check(t, python, "-c", `import sys
from rattler_build import Stage0Recipe, VariantConfig
rendered = Stage0Recipe.from_file(sys.argv[1]).render(VariantConfig())
assert len(rendered) == 1, rendered`, filepath.Join(out, "conda-forge/recipe.yaml"))
	}
	delete(r.sums, "tuner-v0.1.0-darwin-arm64.tar.gz")
	if err := r.write("../../deploy/package/recipes", t.TempDir()); err == nil || !strings.Contains(err.Error(), "no archive for darwin-arm64") {
		t.Errorf("without an archive: %v", err)
	}
}

// The packages of a commit are the same each time: its source, in a folder with the name of
// the archive, the image, and recipes with its digest.
func TestPackages(t *testing.T) {
	r := &release{root: "../..", out: t.TempDir(), images: []image{{arch: "amd64", files: files}}}
	v := version{name: "v0.1.0", commit: "HEAD", time: time.Unix(1800000000, 0).UTC()}
	var sums []string
	for target := range strings.FieldsSeq(targets) {
		sums = append(sums, strings.Repeat("a", 64)+"  tuner-v0.1.0-"+strings.ReplaceAll(target, "/", "-")+".tar.gz")
	}
	lines, err := r.packages(t.Context(), v, sums)
	if err != nil {
		t.Fatal(err)
	}
	again, err := r.packages(t.Context(), v, sums)
	if err != nil || !slices.Equal(lines, again) || len(lines) != 2 || !strings.HasSuffix(lines[1], "  tuner-v0.1.0-oci.tar") {
		t.Errorf("%q, then %q: %v", lines, again, err)
	}
	recipe, err := os.ReadFile(filepath.Join(r.out, "recipes", "conda-forge", "recipe.yaml"))
	if err != nil || !strings.Contains(string(recipe), lines[0][:64]) {
		t.Errorf("the recipe has not the checksum of the source: %v", err)
	}
	text, err := os.ReadFile(filepath.Join(r.out, "tuner-v0.1.0-source.tar.gz"))
	if err != nil {
		t.Fatal(err)
	}
	z, err := gzip.NewReader(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	found := false
	for a := tar.NewReader(z); !found; {
		h, err := a.Next()
		if err != nil {
			t.Fatalf("the source has no go.mod: %v", err)
		}
		found = h.Name == "tuner-v0.1.0-source/go.mod"
	}
}
