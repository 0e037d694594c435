// Cudakernels makes PTX of the kernels with clang. Clang needs its NVPTX back end and nothing of
// CUDA. The first line of a PTX file names the version of clang that made it.
//
//	go -C tools run ./cudakernels         writes *.ptx
//	go -C tools run ./cudakernels -check  compares, and exits with status 3 if clang is another one
package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
)

// clang is the compiler. Its version is part of the result.
const clang = "clang-19"

// The capability and the version of PTX are the least that the driver of a device must
// have. They are also in package cuda.
var flags = strings.Fields("-x cuda --cuda-device-only -nocudainc -nocudalib --cuda-gpu-arch=sm_75 --cuda-feature=+ptx70 -O3 -ffp-contract=fast -S -o -")

var errOther = errors.New("skipped: the PTX was made by another version of clang")

func main() {
	check := len(os.Args) > 1 && os.Args[1] == "-check"
	err := os.Chdir("../internal/gpu/cuda/kernels")
	if err == nil {
		err = run(check)
	}
	switch {
	case errors.Is(err, errOther):
		fmt.Println(err)
		os.Exit(3)
	case err != nil:
		fmt.Fprintln(os.Stderr, "cudakernels:", err)
		os.Exit(1)
	}
}

func run(check bool) error {
	version, err := exec.Command(clang, "--version").Output()
	if err != nil && check {
		return fmt.Errorf("%w: %s is not installed", errOther, clang)
	} else if err != nil {
		return fmt.Errorf("%s: %w; install it, such as with apt-get install %[1]s", clang, err)
	}
	number := regexp.MustCompile(`\d+\.\d+\.\d+`).Find(version)
	for _, name := range []string{"product", "algebra"} {
		file := name + ".ptx"
		head := fmt.Appendf(nil, "// Made by gen from %s.cu with clang %s. DO NOT EDIT.\n", name, number)
		old, err := os.ReadFile(file)
		if check {
			if err != nil {
				return err
			}
			if line, _, _ := bytes.Cut(old, []byte("\n")); !bytes.Equal(append(line, '\n'), head) {
				return fmt.Errorf("%w: this is clang %s, and %s begins %q", errOther, number, file, line)
			}
		}
		cmd := exec.Command(clang, append(flags, name+".cu")...)
		cmd.Stderr = os.Stderr
		text, err := cmd.Output()
		if err != nil {
			return fmt.Errorf("%s %s.cu: %w", clang, name, err)
		}
		text = append(head, remarks.ReplaceAll(lines.ReplaceAll(text, nil), nil)...)
		if !check {
			err = os.WriteFile(file, text, 0o644)
		} else if !bytes.Equal(text, old) {
			err = fmt.Errorf("%s is not what clang makes of %s.cu; run go generate ./internal/gpu/cuda/kernels", file, name)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// lines and remarks are comments of clang, a lot of the file.
var (
	lines   = regexp.MustCompile(`(?m)^[ \t]*//.*\n`)
	remarks = regexp.MustCompile(`(?m)[ \t]*//.*$`)
)
