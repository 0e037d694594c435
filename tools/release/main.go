// Release builds the archives of a release: the program for each system with its
// licences, manual pages, shell completion and an SBOM (CycloneDX 1.6), the file
// SHA256SUMS, and provenance.intoto.jsonl (SLSA 1.0, not signed). The same commit gives the same bytes. Paths are trimmed, entries
// are sorted, owners are zero, and all times are the time of the commit. A release of all
// systems also has the source, an OCI image, and recipes with the checksums for Homebrew,
// conda-forge, winget and Kubernetes.
//
//	go -C tools run ./release -out $PWD/dist
//
// With -licences it writes only the licences of a program that is built already:
//
//	go -C tools run ./release -licences $PWD/bin/tuner -out $PWD/licenses
package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"debug/buildinfo"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
)

// product is the module that is released, and program its package.
const (
	product = "github.com/bkbtuner/bkb"
	program = product + "/cmd/tuner"
)

// tags leave out what docs/architecture.md, Size, names.
const tags = "grpcnotrace,nethttpomithttp2,nopgxregisterdefaulttypes"

const targets = "linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64 windows/arm64"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	var r release
	flag.StringVar(&r.out, "out", "dist", "the directory for the archives")
	flag.StringVar(&r.targets, "targets", targets, "the systems, as OS/ARCH with spaces between")
	flag.StringVar(&r.licences, "licences", "", "the program whose licences to write to -out, and nothing else")
	flag.StringVar(&r.builder, "builder", "https://"+product+"/tools/release", "the URI of who builds, for the provenance")
	flag.BoolVar(&r.dirty, "dirty", false, "build from files that are not committed, too")
	flag.Parse()
	if err := r.run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

type release struct {
	out, targets, licences, builder string
	dirty                           bool

	root   string // of the product
	work   string // for the programs and pages
	images []image
}

func (r *release) run(ctx context.Context) (err error) {
	if r.root, err = output(ctx, "", nil, "go", "list", "-m", "-f", "{{.Dir}}", product); err != nil {
		return err
	}
	if r.licences != "" {
		info, err := buildinfo.ReadFile(r.licences)
		if err != nil {
			return fmt.Errorf("-licences %s: must be a program that Go built: %w", r.licences, err)
		}
		return r.writeLicences(ctx, info)
	}
	if r.work, err = os.MkdirTemp("", "release-"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(r.work)) }()
	if err := os.MkdirAll(r.out, 0o755); err != nil {
		return err
	}
	// The program of this machine writes the pages that are the same everywhere.
	host, info, err := r.build(ctx, runtime.GOOS, runtime.GOARCH)
	if err != nil {
		return err
	}
	v, err := versionOf(info)
	if err != nil {
		return err
	}
	if v.dirty && !r.dirty {
		return fmt.Errorf("files are not committed, so the archives could not be built again: commit them, or say -dirty")
	}
	common, err := r.common(ctx, host, v)
	if err != nil {
		return err
	}
	var sums []string
	for target := range strings.FieldsSeq(r.targets) {
		system, arch, ok := strings.Cut(target, "/")
		if !ok {
			return fmt.Errorf("-targets %s: must be OS/ARCH, such as linux/amd64", target)
		}
		sum, err := r.archive(ctx, system, arch, v, common)
		if err != nil {
			return fmt.Errorf("%s: %w", target, err)
		}
		fmt.Println(sum)
		sums = append(sums, sum)
	}
	if r.targets == targets {
		more, err := r.packages(ctx, v, sums)
		if err != nil {
			return err
		}
		sums = append(sums, more...)
	}
	slices.SortFunc(sums, func(a, b string) int { return strings.Compare(a[64:], b[64:]) })
	text, err := provenanceOf(v, r.targets, r.builder, sums)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(r.out, "provenance.intoto.jsonl"), text, 0o644); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(r.out, "SHA256SUMS"), []byte(strings.Join(sums, "\n")+"\n"), 0o644)
}

// packages writes the source, the image and the recipes of a release, and returns the lines of
// the first two for SHA256SUMS.
func (r *release) packages(ctx context.Context, v version, sums []string) ([]string, error) {
	source, err := r.source(ctx, v)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	digest, err := layout(&b, v, r.images)
	if err != nil {
		return nil, err
	}
	made := recipes{Tag: v.name, Version: strings.TrimPrefix(v.name, "v"), Date: v.time.Format(time.DateOnly), Tags: tags, Image: digest, sums: make(map[string]string)}
	oci, err := r.put("tuner-"+v.name+"-oci.tar", b.Bytes())
	if err != nil {
		return nil, err
	}
	fmt.Println(digest + "  is the image")
	for _, line := range slices.Concat(sums, []string{source}) {
		sum, name, _ := strings.Cut(line, "  ")
		made.sums[name] = sum
	}
	return []string{source, oci}, made.write(filepath.Join(r.root, "deploy", "package", "recipes"), filepath.Join(r.out, "recipes"))
}

// source writes the files of the commit.
func (r *release) source(ctx context.Context, v version) (string, error) {
	name := "tuner-" + v.name + "-source"
	cmd := exec.CommandContext(ctx, "git", "archive", "--format=tar", "--prefix="+name+"/", v.commit)
	cmd.Dir, cmd.Stderr = r.root, os.Stderr
	plain, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("git archive: %w", err)
	}
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, err = z.Write(plain)
	if err := errors.Join(err, z.Close()); err != nil {
		return "", err
	}
	return r.put(name+".tar.gz", b.Bytes())
}

// put writes a file of the release and returns its line of SHA256SUMS.
func (r *release) put(name string, data []byte) (string, error) {
	line := fmt.Sprintf("%x  %s", sha256.Sum256(data), name)
	return line, os.WriteFile(filepath.Join(r.out, name), data, 0o644)
}

// version names a release and its time.
type version struct {
	name   string
	commit string // its SHA
	time   time.Time
	dirty  bool
}

func versionOf(info *buildinfo.BuildInfo) (version, error) {
	v := version{name: info.Main.Version}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.time":
			t, err := time.Parse(time.RFC3339, s.Value)
			if err != nil {
				return v, fmt.Errorf("vcs.time: %w", err)
			}
			v.time = t.UTC()
		case "vcs.revision":
			v.commit = s.Value
		case "vcs.modified":
			v.dirty = s.Value == "true"
		}
	}
	if v.time.IsZero() || v.name == "" || v.name == "(devel)" {
		return v, errors.New("the build knows no commit: run it in a clone of the repository, with git installed")
	}
	return v, nil
}

// build compiles the program for a system and returns its path.
func (r *release) build(ctx context.Context, system, arch string) (string, *buildinfo.BuildInfo, error) {
	path := filepath.Join(r.work, "tuner-"+system+"-"+arch)
	_, err := output(ctx, r.root, []string{"GOOS=" + system, "GOARCH=" + arch, "CGO_ENABLED=0", "GOFLAGS=-mod=readonly", "GOAMD64=v1", "GOARM64=v8.0", "GOWORK=off"},
		"go", "build", "-trimpath", "-buildvcs=true", "-tags="+tags, "-ldflags=-s -w", "-o", path, program)
	if err != nil {
		return "", nil, err
	}
	info, err := buildinfo.ReadFile(path)
	return path, info, err
}

// common returns what all archives hold: pages, completion, documents.
func (r *release) common(ctx context.Context, host string, v version) ([]file, error) {
	pages := filepath.Join(r.work, "man")
	if err := os.Mkdir(pages, 0o755); err != nil {
		return nil, err
	}
	if _, err := output(ctx, r.work, []string{fmt.Sprintf("SOURCE_DATE_EPOCH=%d", v.time.Unix())}, host, "man", pages); err != nil {
		return nil, err
	}
	var files []file
	entries, err := os.ReadDir(pages)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		text, err := os.ReadFile(filepath.Join(pages, e.Name()))
		if err != nil {
			return nil, err
		}
		files = append(files, file{name: "man/man1/" + e.Name(), data: text})
	}
	for shell, name := range map[string]string{"bash": "tuner.bash", "zsh": "_tuner", "fish": "tuner.fish", "powershell": "tuner.ps1"} {
		text, err := output(ctx, r.work, nil, host, "completion", shell)
		if err != nil {
			return nil, err
		}
		files = append(files, file{name: "completions/" + name, data: []byte(text + "\n")})
	}
	for _, name := range []string{"LICENSE", "NOTICE", "README.md", "CHANGELOG.md"} {
		text, err := os.ReadFile(filepath.Join(r.root, name))
		if err != nil {
			return nil, err
		}
		files = append(files, file{name: name, data: text})
	}
	return files, nil
}

// archive builds one archive and returns its line of SHA256SUMS.
func (r *release) archive(ctx context.Context, system, arch string, v version, common []file) (string, error) {
	path, info, err := r.build(ctx, system, arch)
	if err != nil {
		return "", err
	}
	if now, err := versionOf(info); err != nil || now != v {
		return "", fmt.Errorf("the files changed during the build, from %s to %s: begin again", v.name, info.Main.Version)
	}
	executable, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	modules, err := r.modules(ctx, info)
	if err != nil {
		return "", err
	}
	text, err := sbom(v, info, system, arch, executable, modules)
	if err != nil {
		return "", err
	}
	name := strings.Join([]string{"tuner", v.name, system, arch}, "-")
	ending, binary, write := ".tar.gz", "tuner", tarball
	if system == "windows" {
		ending, binary, write = ".zip", "tuner.exe", zipped
	}
	files := append(slices.Clone(common), file{name: binary, data: executable, executable: true}, file{name: "sbom.cdx.json", data: text})
	for _, m := range modules {
		files = append(files, m.texts...)
	}
	if system == "linux" {
		r.images = append(r.images, image{arch: arch, files: slices.DeleteFunc(slices.Clone(files), func(f file) bool {
			return f.name != binary && f.name != "LICENSE" && f.name != "NOTICE" && !strings.HasPrefix(f.name, "licenses/")
		})})
	}
	var b bytes.Buffer
	if err := write(&b, name, v.time, files); err != nil {
		return "", err
	}
	return r.put(name+ending, b.Bytes())
}

// output runs a command and returns what it prints.
func output(ctx context.Context, dir string, env []string, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), env...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w\n%s", filepath.Base(name), strings.Join(args, " "), err, stderr.Bytes())
	}
	return strings.TrimSpace(string(out)), nil
}
