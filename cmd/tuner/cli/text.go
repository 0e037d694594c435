package cli

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"unicode/utf8"

	"github.com/bkbtuner/bkb/internal/gpu"
	"github.com/bkbtuner/bkb/internal/simd"
	"github.com/bkbtuner/bkb/store"
	"github.com/bkbtuner/bkb/tuner/study"
	"github.com/spf13/cobra"
)

// ParseAttributes reads notes.
func ParseAttributes(pairs []string) (study.Attributes, error) {
	if len(pairs) == 0 {
		return nil, nil
	}
	out := make(study.Attributes)
	for _, pair := range pairs {
		key, value, ok := strings.Cut(pair, "=")
		if _, twice := out[key]; twice {
			return nil, Usagef("the note %s is given twice; leave one out", key)
		}
		if !ok || key == "" {
			return nil, Usagef("the note %q is not key=value; write it as owner=anna", pair)
		}
		out[key] = value
	}
	return out, nil
}

// CheckName refuses a text that cannot be the name of a study.
func CheckName(name string) error {
	if err := store.CheckName(name); err != nil {
		return Exit(ExitInvalid, errors.New(strings.TrimPrefix(err.Error(), store.ErrInvalid.Error()+": ")))
	}
	return nil
}

// CountText is 1 row, 2 rows, ….
func CountText(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprintf("%d %s", n, what)
}

// NoteCommands writes commands to stderr, each with its purpose.
func (g *Globals) NoteCommands(cmd *cobra.Command, commands [][2]string) {
	g.Note(cmd, "Next:")
	for _, c := range commands {
		g.Note(cmd, "  # %s\n  %s %s", c[0], ProgramName(), c[1])
	}
}

// ProgramName is the command that starts this program. With go run there is no file.
func ProgramName() string {
	if strings.Contains(os.Args[0], "go-build") {
		return "go run ./cmd/tuner"
	}
	return "tuner"
}

// ReadFile reads at most some bytes of a file, or of stdin for -.
func ReadFile(cmd *cobra.Command, path string, most int64) ([]byte, error) {
	in := cmd.InOrStdin()
	if path != "-" {
		file, err := os.Open(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, Exit(ExitNotFound, fmt.Errorf("there is no file %s", path))
		} else if err != nil {
			return nil, err
		}
		defer file.Close()
		in = file
	}
	return io.ReadAll(io.LimitReader(in, most))
}

func IsDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// ShellQuote writes text as one word of a POSIX shell.
func ShellQuote(s string) string {
	plain := func(r rune) bool {
		return '0' <= r && r <= '9' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || strings.ContainsRune("_-./:=,+@%", r)
	}
	if s != "" && !strings.ContainsFunc(s, func(r rune) bool { return !plain(r) }) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

func Them(n int) string {
	if n == 1 {
		return "it"
	}
	return "them"
}

// TrialsText is 1 trial, 2 trials, ….
func TrialsText(n int) string { return CountText(n, "trial") }

func NumbersText(trials []int) string {
	words := make([]string, len(trials))
	for i, n := range trials {
		words[i] = fmt.Sprint(n)
	}
	if len(words) == 1 {
		return "trial " + words[0]
	}
	return "trials " + strings.Join(words, ", ")
}

// Wrap breaks a text into lines of at most limit columns, where words allow it. The lines
// after the first begin with indent.
func Wrap(text string, limit int, indent string) string {
	var b strings.Builder
	column := 0
	for word := range strings.FieldsSeq(text) {
		n := utf8.RuneCountInString(word)
		switch {
		case column == 0:
		case column+1+n > limit:
			b.WriteString("\n" + indent)
			column = len(indent)
		default:
			b.WriteByte(' ')
			column++
		}
		b.WriteString(word)
		column += n
	}
	return b.String()
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
