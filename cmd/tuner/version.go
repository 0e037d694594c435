package main

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	"github.com/bkbtuner/bkb/internal/gpu"
	"github.com/bkbtuner/bkb/internal/simd"
)

func newVersion() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version of this program",
		Long: `Version prints the version of the module, the commit if the build has it, the version of
Go, the system, and the vector instructions in use (avx512, avx2 or portable). A program that can use
GPUs adds gpu=cuda. The flag --version prints the same line.`,
		Example: "  tuner version",
		Args:    exactly(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintln(cmd.OutOrStdout(), versionLine())
			return err
		},
	}
}

// versionLine is the output of the command version and of the flag --version.
func versionLine() string {
	words := []string{"tuner", version(), runtime.Version(), runtime.GOOS + "/" + runtime.GOARCH, "simd=" + simd.For[float64]().Path}
	if gpu.Registered() != nil {
		words = append(words, "gpu=cuda")
	}
	return strings.Join(words, " ")
}

// version is the version of the module, with the commit if the build has it.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "(unknown)"
	}
	v := info.Main.Version
	if v == "" {
		v = "(devel)"
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && len(s.Value) >= 12 {
			v += " " + s.Value[:12]
		}
	}
	return v
}
