package cli

import (
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/bkbtuner/bkb/internal/gpu"
	"github.com/bkbtuner/bkb/internal/simd"
)

// ModuleVersion is the version without the commit.
func ModuleVersion() string {
	v, _, _ := strings.Cut(Version(), " ")
	return v
}

// VersionLine is the output of the command version and of the flag --version.
func VersionLine() string {
	words := []string{"tuner", Version(), runtime.Version(), runtime.GOOS + "/" + runtime.GOARCH, "simd=" + simd.For[float64]().Path}
	if gpu.Registered() != nil {
		words = append(words, "gpu=cuda")
	}
	return strings.Join(words, " ")
}

// Version is the version of the module, with the commit if the build has it.
func Version() string {
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
