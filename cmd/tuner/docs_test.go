package main

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/bkbtuner/bkb/tuner/propose"
	"github.com/bkbtuner/bkb/tuner/prune"
	"github.com/bkbtuner/bkb/tuner/space"
	"github.com/bkbtuner/bkb/tuner/study"
	"github.com/spf13/cobra"
)

const (
	docsFile   = "../../docs/cli.md"
	docsMarker = "<!-- generated from here on -->\n"
)

// TestDocs holds docs/cli.md against the commands; UPDATE_DOCS=1 writes it anew.
func TestDocs(t *testing.T) {
	page, err := os.ReadFile(docsFile)
	if err != nil {
		t.Fatal(err)
	}
	head, have, ok := strings.Cut(string(page), docsMarker)
	if !ok {
		t.Fatalf("%s has no line %q", docsFile, docsMarker)
	}
	var want strings.Builder
	describeCommand(&want, newRoot(&globals{}))
	if have == want.String() {
		return
	}
	if os.Getenv("UPDATE_DOCS") == "" {
		t.Fatalf("%s is not what the commands say; write it anew with UPDATE_DOCS=1 go test ./cmd/tuner -run TestDocs", docsFile)
	}
	if err := os.WriteFile(docsFile, []byte(head+docsMarker+want.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestOptionsDescribed: every option that a proposer or a pruner knows is in
// docs/cli.md. They name them all where there is one that they do not know.
func TestOptionsDescribed(t *testing.T) {
	page, err := os.ReadFile(docsFile)
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "## Proposers and pruners\n")
	section, _, _ = strings.Cut(section, "\n## ")
	sp, _, err := space.Parse([]byte("version: 1\nparameters:\n  x: {type: float, low: 0, high: 1}\n"))
	if err != nil {
		t.Fatal(err)
	}
	spec := study.Spec{Space: sp, Objectives: []study.Objective{{Name: "loss", Direction: study.Minimize}}}
	check := func(name string, err error) {
		invalid := (*study.InvalidError)(nil)
		if !errors.As(err, &invalid) || !strings.HasSuffix(invalid.Field, ".unheard_of") {
			t.Fatalf("%s: %v", name, err)
		}
		_, list, ok := strings.Cut(invalid.Remedy, " are ")
		if !ok {
			t.Fatalf("%s: %s", name, invalid.Remedy)
		}
		for _, option := range append(strings.Split(list, ", "), name) {
			if !strings.Contains(section, "`"+option+"`") {
				t.Errorf("%s does not tell of the option %s of %s", docsFile, option, name)
			}
		}
	}
	for _, name := range []string{propose.BKB, propose.Grid} {
		_, err := propose.New(study.Component{Name: name, Options: `{"unheard_of": 1}`}, spec)
		check(name, err)
	}
	for name, must := range map[string]string{
		prune.Median: "", prune.Percentile: "", prune.ASHA: "", prune.Hyperband: `"max_resource": 9, `,
		prune.Threshold: `"lower": 0, `, prune.Patience: `"patience_steps": 3, `, prune.Model: "",
	} {
		_, err := prune.New(study.Component{Name: name, Options: "{" + must + `"unheard_of": 1}`}, spec)
		check(name, err)
	}
}

func describeCommand(b *strings.Builder, cmd *cobra.Command) {
	cmd.InitDefaultHelpFlag()
	fmt.Fprintf(b, "\n### %s\n\n%s.\n", cmd.CommandPath(), cmd.Short)
	usage := cmd.UseLine()
	if cmd.HasSubCommands() {
		usage = cmd.CommandPath() + " COMMAND"
	}
	fmt.Fprintf(b, "\n```text\n%s\n\n%s\n```\n", usage, strings.TrimSpace(cmd.Long))
	fmt.Fprintf(b, "\n```sh\n%s\n```\n", strings.ReplaceAll(strings.TrimPrefix(cmd.Example, "  "), "\n  ", "\n"))
	flags := cmd.LocalFlags().FlagUsages()
	if cmd.HasParent() {
		flags = cmd.NonInheritedFlags().FlagUsages()
	}
	var kept []string
	for line := range strings.Lines(flags) {
		if !strings.Contains(line, "--help") {
			kept = append(kept, line)
		}
	}
	if len(kept) > 0 {
		fmt.Fprintf(b, "\n```text\n%s```\n", strings.Join(kept, ""))
	}
	for _, sub := range cmd.Commands() {
		if sub.IsAvailableCommand() && sub.Name() != "help" {
			describeCommand(b, sub)
		}
	}
}

// TestEveryCommandHelps: a short line, a long text and examples that name it.
func TestEveryCommandHelps(t *testing.T) {
	var walk func(cmd *cobra.Command)
	walk = func(cmd *cobra.Command) {
		if cmd.Short == "" || cmd.Long == "" || !strings.Contains(cmd.Example, cmd.CommandPath()) && !strings.Contains(cmd.Example, cmd.Name()) {
			t.Errorf("%s lacks a short line, a long text or an example of itself", cmd.CommandPath())
		}
		for line := range strings.Lines(cmd.Long) {
			if n := len([]rune(strings.TrimSuffix(line, "\n"))); n > 100 {
				t.Errorf("%s: a line of its help has %d characters: %s", cmd.CommandPath(), n, line)
			}
		}
		for _, sub := range cmd.Commands() {
			walk(sub)
		}
	}
	walk(newRoot(&globals{}))
}
