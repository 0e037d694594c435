package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/bkbtuner/bkb/cmd/tuner/cli"
	"github.com/bkbtuner/bkb/cmd/tuner/learners"
	"github.com/bkbtuner/bkb/cmd/tuner/server"
	"github.com/bkbtuner/bkb/cmd/tuner/studies"
	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
	"github.com/spf13/pflag"
)

func newVersion() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version of this program",
		Long: `Version prints the version of the module, the commit if the build has it, the version of
Go, the system, and the vector instructions in use (avx512, avx2 or portable). A program that can use
GPUs adds gpu=cuda. The flag --version prints the same line.`,
		Example: "  tuner version",
		Args:    cli.Exactly(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintln(cmd.OutOrStdout(), cli.VersionLine())
			return err
		},
	}
}

// addCompletion adds cobra's commands for the completion in shells.
func addCompletion(root *cobra.Command) {
	root.SetCompletionCommandGroupID("Program")
	root.InitDefaultCompletionCmd()
	cmd, _, _ := root.Find([]string{"completion"})
	cmd.Short, cmd.Args, cmd.Example = "Print the completion script of a shell", cli.NoArgs, "  source <(tuner completion bash)"
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() } // without it, arguments are not checked
	for _, shell := range cmd.Commands() {
		shell.Args, shell.Example = cli.Exactly(0), "  "+shell.CommandPath()
	}
}

func newMan() *cobra.Command {
	return &cobra.Command{
		Use:   "man DIR",
		Short: "Write the manual pages",
		Long: `Man writes a manual page for each command into an existing directory.

The date of the pages is SOURCE_DATE_EPOCH (seconds since 1970), else the current time.`,
		Example: "  mkdir -p ~/.local/share/man/man1\n  tuner man ~/.local/share/man/man1",
		Args:    cli.Exactly(1),
		RunE: func(_ *cobra.Command, args []string) error {
			date := time.Now()
			if text := os.Getenv("SOURCE_DATE_EPOCH"); text != "" {
				seconds, err := strconv.ParseInt(text, 10, 64)
				if err != nil {
					return cli.Usagef("SOURCE_DATE_EPOCH=%s: must be seconds since 1970", text)
				}
				date = time.Unix(seconds, 0).UTC()
			}
			if !cli.IsDir(args[0]) {
				return fmt.Errorf("cannot write manual pages: there is no directory %s; create it first: %w", args[0], fs.ErrNotExist)
			}
			return writeMan(newRoot(&cli.Globals{}), args[0], date)
		},
	}
}

// writeMan writes the manual pages of a command and of those below it, and changes them.
func writeMan(cmd *cobra.Command, dir string, date time.Time) error {
	cmd.Long, cmd.DisableAutoGenTag = markdown(cmd.Long), true
	cmd.Root().PersistentFlags().VisitAll(func(f *pflag.Flag) { f.Hidden = !cli.Shows(cmd, f) })
	name := strings.ReplaceAll(cmd.CommandPath(), " ", "-")
	file, err := os.Create(filepath.Join(dir, name+".1"))
	if err != nil {
		return err
	}
	header := &doc.GenManHeader{Title: strings.ToUpper(name), Section: "1", Date: &date, Source: "BKB Tuner", Manual: "BKB Tuner Manual"}
	err = errors.Join(doc.GenMan(cmd, header, file), file.Close())
	for _, sub := range cmd.Commands() {
		if err == nil && (sub.IsAvailableCommand() || sub.IsAdditionalHelpTopicCommand()) {
			err = writeMan(sub, dir, date)
		}
	}
	return err
}

var special = regexp.MustCompile("[\\\\`*_<>#]")

// markdown turns a help text into Markdown. Paragraphs with indented lines are tables
// and keep their lines, other paragraphs flow.
func markdown(help string) string {
	paragraphs := strings.Split(strings.TrimSpace(help), "\n\n")
	for i, p := range paragraphs {
		if cli.IsTable(p) {
			paragraphs[i] = "    " + strings.ReplaceAll(p, "\n", "\n    ")
		} else {
			paragraphs[i] = special.ReplaceAllString(p, `\$0`)
		}
	}
	return strings.Join(paragraphs, "\n\n")
}

// newHelp is the command that shows help pages. Cobra's own knows no topics, and an unknown
// command is no error there.
func newHelp() *cobra.Command {
	return &cobra.Command{
		Use:     "help [COMMAND]",
		Short:   "Show the help page of a command or topic",
		Long:    `Help shows the help page of a command or of a topic. Without either it lists them.`,
		Example: "  tuner help train krr\n  tuner help exit-codes",
		ValidArgsFunction: cli.Begun(func(cmd *cobra.Command, args []string, _ string) (list []string, _ cobra.ShellCompDirective) {
			if about, rest, err := cmd.Root().Find(args); err == nil && len(rest) == 0 {
				for _, sub := range about.Commands() {
					if sub.IsAvailableCommand() || sub.IsAdditionalHelpTopicCommand() {
						list = append(list, cobra.CompletionWithDesc(sub.Name(), sub.Short))
					}
				}
			}
			return list, cobra.ShellCompDirectiveNoFileComp
		}),
		RunE: func(cmd *cobra.Command, args []string) error {
			about, rest, err := cmd.Root().Find(args)
			if about == nil {
				return err
			}
			// Find checks the arguments of the program, but not those of its commands.
			if len(rest) > 0 || err != nil {
				return cli.NoArgs(about, rest)
			}
			return about.Help()
		},
	}
}

// newTopics returns the help pages that belong to no single command.
func newTopics() []*cobra.Command {
	topics := []*cobra.Command{
		{
			Use:   "exit-codes",
			Short: "Exit codes of all commands",
			Long: `The exit code of a command says what happened. A code never changes its meaning.

` + cli.ExitHelp(),
			Example: "  tuner ask digits; echo $?",
		},
		{
			Use:   "environment",
			Short: "Environment variables",
			Long: `These environment variables replace flags and change how the program works.

  TUNER_DB      file with the studies, as --db
  TUNER_SERVER  server, as --server
  TUNER_STORE   URL of a database with the studies, as --store
  TUNER_TOKEN   token for the server (see also --token-file)
  TUNER_TOKENS  token file of a server, as --tokens
  TUNER_STUDY   study of a command that names none
  TRACEPARENT   W3C trace context, for the log of the server
  NO_COLOR      no colours, unless --color always is given
  COLUMNS       width of tables where stdout is no terminal (default no limit)
  BKB_SIMD      vector instructions, avx512, avx2 or portable (default the best)
  BKB_DEVICE    device for kernel products, as --device
  BKB_CUDA_DRIVER
                library of the CUDA driver (default libcuda.so.1)`,
			Example: "  TUNER_SERVER=tuner.example.org:7070 tuner studies",
		},
	}
	topics = append(topics, cli.Connects(cli.ToService, &cobra.Command{
		Use:   "connection",
		Short: "Files, databases, servers, tokens and TLS",
		Long: `Commands work on a file (--db), on a PostgreSQL database (--store) or on a server
(--server) in the same way.

Many processes can use one file. Each opens it for a moment while the others wait,
up to --lock-timeout. A server on this machine needs no TLS. A server elsewhere
needs TLS, unless --insecure is given. If the server has a token file, each call
needs a token. Put it into a file for --token-file or into TUNER_TOKEN.

--server also takes several servers of one database, as in a:7070,b:7070. A command goes
to the next when its own is gone.`,
		Example: "  tuner --server tuner.example.org:7070 --ca ca.pem --token-file token studies",
	})...)
	return append(append(append(topics, studies.NewCommandsTopic()), learners.Topics()...), server.Topics()...)
}
