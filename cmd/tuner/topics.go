package main

import (
	"github.com/bkbtuner/bkb/cmd/tuner/cli"
	"github.com/bkbtuner/bkb/cmd/tuner/learners"
	"github.com/bkbtuner/bkb/cmd/tuner/server"
	"github.com/spf13/cobra"
)

// newHelp is the command that shows help pages.
func newHelp() *cobra.Command {
	return &cobra.Command{
		Use:     "help [COMMAND]",
		Short:   "Show the help page of a command or topic",
		Long:    `Help shows the help page of a command or of a topic. Without either it lists them.`,
		Example: "  tuner help train krr\n  tuner help exit-codes",
		ValidArgsFunction: func(cmd *cobra.Command, args []string, toComplete string) ([]string, cobra.ShellCompDirective) {
			about, rest, err := cmd.Root().Find(args)
			if err != nil || len(rest) > 0 {
				return cli.Nothing()
			}
			var list []string
			for _, sub := range about.Commands() {
				if sub.IsAvailableCommand() || sub.IsAdditionalHelpTopicCommand() {
					list = append(list, cobra.CompletionWithDesc(sub.Name(), sub.Short))
				}
			}
			return cli.Beginning(list, toComplete), cobra.ShellCompDirectiveNoFileComp
		},
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
	return append([]*cobra.Command{
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
  COLUMNS       width of tables where stdout is no terminal (default 80)
  BKB_SIMD      vector instructions, avx512, avx2 or portable (default the best)
  BKB_DEVICE    device for kernel products, as --device
  BKB_CUDA_DRIVER
                library of the CUDA driver (default libcuda.so.1)

A command that tuner run starts also has TUNER_TRIAL, TUNER_EPOCH, TUNER_LEASE,
TUNER_CONFIG and one TUNER_PARAM_NAME for each parameter.`,
			Example: "  TUNER_SERVER=tuner.example.org:7070 tuner studies",
		},
		newConnectionTopic(),
		learners.NewDataTopic(),
	}, server.Topics()...)
}

func newConnectionTopic() *cobra.Command {
	return &cobra.Command{
		Use:   "connection",
		Short: "Files, databases, servers, tokens and TLS",
		Long: `Commands work on a file (--db), on a PostgreSQL database (--store) or on a server
(--server) in the same way.

Many processes can use one file. Each opens it for a moment while the others wait,
up to --lock-timeout. A server on this machine needs no TLS. A server elsewhere
needs TLS, unless --insecure is given. If the server has a token file, each call
needs a token. Put it into a file for --token-file or into TUNER_TOKEN.`,
		Example: "  tuner --server tuner.example.org:7070 --ca ca.pem --token-file token studies",
	}
}
