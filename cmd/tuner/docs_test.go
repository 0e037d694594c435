package main

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/bkbtuner/bkb/cmd/tuner/cli"
	"github.com/bkbtuner/bkb/tuner/propose"
	"github.com/bkbtuner/bkb/tuner/prune"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

const (
	docsFile   = "../../docs/cli.md"
	docsMarker = "<!-- generated from here on -->\n"
)

// TestDocs compares the table of docs/cli.md with the commands. UPDATE_DOCS=1 writes it anew.
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
	listCommands(&want, newRoot(&cli.Globals{}))
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

// Every option of a proposer or a pruner is in docs/cli.md. The error of an unknown
// option names them all.
func TestOptionsDescribed(t *testing.T) {
	page, err := os.ReadFile(docsFile)
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "## Proposers and pruners\n")
	section, _, _ = strings.Cut(section, "\n## ")
	check := func(name string, known []string) {
		if len(known) == 0 && name != propose.Sobol && name != propose.Random {
			t.Errorf("%s has no options", name)
		}
		for _, option := range append(known, name) {
			if !strings.Contains(section, "`"+option+"`") {
				t.Errorf("%s does not tell of the option %s of %s", docsFile, option, name)
			}
		}
	}
	for _, name := range propose.Names() {
		check(name, propose.Options(name))
	}
	for _, name := range prune.Names() {
		check(name, prune.Options(name))
	}
}

// listCommands writes a table of the commands and help topics.
func listCommands(b *strings.Builder, root *cobra.Command) {
	b.WriteString("\n| command | |\n|---|---|\n")
	var list func(cmd *cobra.Command)
	list = func(cmd *cobra.Command) {
		for _, sub := range cmd.Commands() {
			if sub.IsAvailableCommand() && sub.Name() != "help" || sub.IsAdditionalHelpTopicCommand() {
				fmt.Fprintf(b, "| `%s` | %s |\n", pageName(sub), sub.Short)
				list(sub)
			}
		}
	}
	list(root)
}

// describeCommand writes the help pages of a command and of those below it.
func describeCommand(b *strings.Builder, cmd *cobra.Command) {
	fmt.Fprintf(b, "\n### %s\n\n```text\n%s```\n", pageName(cmd), cli.HelpPage(cmd))
	for _, sub := range cmd.Commands() {
		if sub.IsAvailableCommand() && sub.Name() != "help" || sub.IsAdditionalHelpTopicCommand() {
			describeCommand(b, sub)
		}
	}
}

// pageName is the command that prints a help page, or that the page is about.
func pageName(cmd *cobra.Command) string {
	if cmd.IsAdditionalHelpTopicCommand() {
		return "tuner help " + cmd.Name()
	}
	return cmd.CommandPath()
}

// maxHelpLines is the most lines of a help page, about a screen.
const maxHelpLines = 44

// Every command has a short line, a page of about a screen, and an example
// that names it.
func TestHelpPages(t *testing.T) {
	var walk func(cmd *cobra.Command)
	walk = func(cmd *cobra.Command) {
		if cmd.Short == "" || cmd.Long == "" || !strings.Contains(cmd.Example, cmd.CommandPath()) && !strings.Contains(cmd.Example, cmd.Name()) && !cmd.IsAdditionalHelpTopicCommand() {
			t.Errorf("%s lacks a short line, a long text or an example of itself", cmd.CommandPath())
		}
		page := cli.HelpPage(cmd)
		most := maxHelpLines
		if !cmd.HasParent() {
			most += 26 // the list of all commands
		}
		if n := strings.Count(page, "\n"); n > most {
			t.Errorf("the help page of %s has %d lines, and %d may be", cmd.CommandPath(), n, most)
		}
		for line := range strings.Lines(page) {
			if n := len([]rune(strings.TrimSuffix(line, "\n"))); n > cli.HelpWidth {
				t.Errorf("%s: a line of its help has %d characters: %s", cmd.CommandPath(), n, line)
			}
		}
		for _, sub := range cmd.Commands() {
			walk(sub)
		}
	}
	walk(newRoot(&cli.Globals{}))
}

// The flags of the connection are on the pages of commands that connect, and the exit
// codes are on a page of their own.
func TestHelpShowsWhatMatters(t *testing.T) {
	root := newRoot(&cli.Globals{})
	page := func(name string) string {
		cmd, _, err := root.Find(strings.Fields(name))
		if err != nil {
			t.Fatal(err)
		}
		return cli.HelpPage(cmd)
	}
	for _, c := range []struct {
		name   string
		has    []string
		hasNot []string
	}{
		{"ask", []string{"Connection: --db file, --store URL, --server host:port (tuner help connection)\nMore flags: tuner --help\n"}, []string{"--token-file", "--quiet"}},
		{"health", []string{"--server host:port"}, []string{"--db"}},
		{"check", []string{"--db file"}, []string{"--server"}},
		{"serve", []string{"--cert file", "--client-ca file            PEM file of the clients' CA certificate", "tuner help limits"}, []string{"--server host:port", "--max-calls"}},
		{"servers", []string{"--advertise host:port", "--takeover duration", "scope peer"}, nil},
		{"train krr", []string{"--data file", "tuner help data"}, []string{"--db", "--server", "--delimiter"}},
		{"version", nil, []string{"--db", "--server"}},
		{"connection", []string{"--ca file", "--token-file file", "--insecure", "--lock-timeout"}, []string{"--quiet"}},
		{"importance", []string{"--db file", "--server host:port"}, nil},
		{"data", []string{"--delimiter character", "--impute"}, nil},
		{"limits", []string{"--max-calls int", "--rate"}, nil},
		{"train falkon", []string{"--centers count"}, []string{"--loss name", "--kernel"}},
		{"hyper-parameters", []string{"--kernel name", "--loss name", "--tolerance number", "--averaging name"}, []string{"--centers"}},
		{"commands", []string{"{args}     all parameters as --name=value", "infeasible=REASON"}, nil},
		{"exit-codes", []string{"   10  the study has finished"}, nil},
		{"run", []string{"More flags: tuner create-study"}, []string{"--minimize objective"}},
		{"create-study", []string{"--minimize objective"}, nil},
	} {
		text := page(c.name)
		for _, want := range c.has {
			if !strings.Contains(text, want) {
				t.Errorf("the page of %s lacks %q:\n%s", c.name, want, text)
			}
		}
		for _, not := range c.hasNot {
			if strings.Contains(text, not) {
				t.Errorf("the page of %s has %q:\n%s", c.name, not, text)
			}
		}
	}
	var all strings.Builder
	describeCommand(&all, root)
	if n := strings.Count(all.String(), "10  the study has finished"); n != 1 {
		t.Errorf("%d pages list the exit codes, want 1", n)
	}
	// Every flag is on some page.
	var walk func(cmd *cobra.Command)
	walk = func(cmd *cobra.Command) {
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if f.Name != "help" && f.Name != "version" && f.Name != "no-descriptions" && !strings.Contains(all.String(), "--"+f.Name) {
				t.Errorf("no page has the flag --%s of %s", f.Name, cmd.CommandPath())
			}
		})
		for _, sub := range cmd.Commands() {
			walk(sub)
		}
	}
	walk(root)
}
