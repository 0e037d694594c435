package main

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/bkbtuner/bkb/cmd/tuner/cli"
	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
	"github.com/spf13/pflag"
)

func newMan() *cobra.Command {
	return &cobra.Command{
		Use:   "man DIR",
		Short: "Write the manual pages",
		Long: `Man writes a manual page for each command into an existing directory.

The date of the pages is SOURCE_DATE_EPOCH (seconds since 1970), else the current time.`,
		Example: "  mkdir -p ~/.local/share/man/man1\n  tuner man ~/.local/share/man/man1",
		Args:    cli.Exactly(1),
		RunE: func(_ *cobra.Command, args []string) error {
			date, err := manDate()
			if err != nil {
				return err
			}
			if !cli.IsDir(args[0]) {
				return fmt.Errorf("cannot write manual pages: there is no directory %s; create it first: %w", args[0], fs.ErrNotExist)
			}
			return writeMan(args[0], date)
		},
	}
}

func manDate() (time.Time, error) {
	text := os.Getenv("SOURCE_DATE_EPOCH")
	if text == "" {
		return time.Now(), nil
	}
	seconds, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return time.Time{}, cli.Usagef("SOURCE_DATE_EPOCH=%s: must be seconds since 1970", text)
	}
	return time.Unix(seconds, 0).UTC(), nil
}

// writeMan writes the manual pages of all commands. It builds its own commands, because it
// changes their help texts.
func writeMan(dir string, date time.Time) error {
	root := newRoot(&cli.Globals{})
	root.DisableAutoGenTag = true
	var prepare func(cmd *cobra.Command)
	prepare = func(cmd *cobra.Command) {
		cmd.Long = markdown(cmd.Long)
		cmd.DisableAutoGenTag = true
		for _, sub := range cmd.Commands() {
			prepare(sub)
		}
	}
	prepare(root)
	header := func(cmd *cobra.Command) *doc.GenManHeader {
		return &doc.GenManHeader{
			Title: strings.ToUpper(strings.ReplaceAll(cmd.CommandPath(), " ", "-")), Section: "1",
			Date: &date, Source: "BKB Tuner", Manual: "BKB Tuner Manual",
		}
	}
	var write func(cmd *cobra.Command) error
	write = func(cmd *cobra.Command) error {
		for _, sub := range cmd.Commands() {
			if !sub.IsAvailableCommand() && !sub.IsAdditionalHelpTopicCommand() {
				continue
			}
			if err := write(sub); err != nil {
				return err
			}
		}
		file, err := os.Create(filepath.Join(dir, strings.ReplaceAll(cmd.CommandPath(), " ", "-")+".1"))
		if err != nil {
			return err
		}
		root.PersistentFlags().VisitAll(func(f *pflag.Flag) { f.Hidden = !cli.Shows(cmd, f) })
		if err := doc.GenMan(cmd, header(cmd), file); err != nil {
			file.Close()
			return err
		}
		return file.Close()
	}
	return write(root)
}

var special = regexp.MustCompile("[\\\\`*_<>#]")

// markdown turns a help text into Markdown. Paragraphs with indented lines are tables
// and keep their lines, other paragraphs flow.
func markdown(help string) string {
	var out []string
	for paragraph := range strings.SplitSeq(strings.TrimSpace(help), "\n\n") {
		if cli.IsTable(paragraph) {
			paragraph = "    " + strings.ReplaceAll(paragraph, "\n", "\n    ")
		} else {
			paragraph = special.ReplaceAllString(paragraph, `\$0`)
		}
		out = append(out, paragraph)
	}
	return strings.Join(out, "\n\n")
}
