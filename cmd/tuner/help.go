package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/bkbtuner/bkb/figure"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// helpWidth is the most columns of a help page.
const helpWidth = 80

// group is a group of flags on a help page.
type group struct {
	title string
	see   string // the command whose page lists the flags instead, or "" for this page
}

// The groups that several commands share.
var (
	general    = group{"General", "tuner --help"}
	connection = group{title: "Connection"}
	output     = group{title: "Output"}
	remote     = group{"Connection", "tuner help connection"}
	dataFormat = group{"Data format", "tuner help data"}
)

// groupKey is the annotation of a flag with its group.
const groupKey = "tuner_group"

// flagGroup calls define and puts the flags that it adds into a group of the help page.
func flagGroup(cmd *cobra.Command, g group, define func(fs *pflag.FlagSet)) {
	fs, earlier := cmd.Flags(), 0
	fs.SortFlags = false
	fs.VisitAll(func(*pflag.Flag) { earlier++ })
	define(fs)
	fs.VisitAll(func(f *pflag.Flag) {
		if earlier--; earlier < 0 {
			assign(f, g)
		}
	})
}

// assign puts a flag into a group.
func assign(f *pflag.Flag, g group) {
	f.Annotations = map[string][]string{groupKey: {g.title, g.see}}
}

// groupOf is the group of a flag.
func groupOf(f *pflag.Flag) group {
	if a := f.Annotations[groupKey]; len(a) == 2 {
		return group{a[0], a[1]}
	}
	return group{title: "Flags"}
}

// What a command connects to decides which flags of the connection its page shows.
const (
	connectsKey = "tuner_connects"
	toService   = "service" // a file, a database or a server
	toPlace     = "place"   // a file or a database
	toFile      = "file"
	toDatabase  = "database"
	toServer    = "server"
)

// setConnections sets what the commands below root connect to.
func setConnections(root *cobra.Command) {
	for to, names := range map[string][]string{
		toService: {
			"create-study", "studies", "run", "pause", "resume", "finish", "delete-study", "ask", "tell", "report", "heartbeat",
			"enqueue", "note", "stop", "trials", "best", "watch", "auto", "export", "import", "backup", "diagnose", "connection",
		},
		toFile:     {"restore", "compact"},
		toPlace:    {"serve", "check", "replay"},
		toDatabase: {"store init", "store upgrade"},
		toServer:   {"health"},
	} {
		for _, name := range names {
			cmd, _, err := root.Find(strings.Fields(name))
			if err != nil {
				panic(err) // no such command
			}
			cmd.Annotations = map[string]string{connectsKey: to}
		}
	}
}

// shows tells whether the page of a command shows a flag of the root command.
func shows(cmd *cobra.Command, f *pflag.Flag) bool {
	to := cmd.Annotations[connectsKey]
	switch f.Name {
	case "quiet", "verbose", "color":
		return true
	case "db", "lock-timeout":
		return to == toService || to == toFile || to == toPlace
	case "store":
		return to == toService || to == toPlace || to == toDatabase
	default:
		return to == toService || to == toServer
	}
}

// flagsOf returns the groups of flags that a command's page shows, in order, and the
// pages on which its other flags are.
func flagsOf(cmd *cobra.Command) (groups []*pflag.FlagSet, see []string) {
	add := func(f *pflag.Flag) {
		g := groupOf(f)
		if g.see != "" && g.see != cmd.CommandPath() && g.see != "tuner help "+cmd.Name() && cmd.HasParent() {
			if !slices.Contains(see, g.see) {
				see = append(see, g.see)
			}
			return
		}
		i := slices.IndexFunc(groups, func(fs *pflag.FlagSet) bool { return fs.Name() == g.title })
		if i < 0 {
			fs := pflag.NewFlagSet(g.title, pflag.ContinueOnError)
			fs.SortFlags = false
			i, groups = len(groups), append(groups, fs)
		}
		groups[i].AddFlag(f)
	}
	if cmd.HasParent() {
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if f.Name != "help" {
				add(f)
			}
		})
	}
	for p := cmd.Parent(); p != nil && p.HasParent(); p = p.Parent() {
		p.PersistentFlags().VisitAll(add)
	}
	cmd.Root().PersistentFlags().VisitAll(func(f *pflag.Flag) {
		if cmd.Flags().Lookup(f.Name) == f && shows(cmd, f) {
			add(f)
		}
	})
	return groups, see
}

// showHelp writes the help page of a command.
func showHelp(cmd *cobra.Command, _ []string) {
	about, rest := helpPage(cmd)
	fmt.Fprint(cmd.OutOrStdout(), about, "\n", rest)
}

// helpPage returns the page in two parts. The first says what the command does. The
// second has an example, the usage, the details and the flags.
func helpPage(cmd *cobra.Command) (about, rest string) {
	cmd.InheritedFlags() // cobra merges the flags of the parents here
	about, details, _ := strings.Cut(wrap(strings.TrimSpace(cmd.Long)), "\n\n")
	var b strings.Builder
	if cmd.Example != "" {
		fmt.Fprintf(&b, "Example:\n%s\n\n", cmd.Example)
	}
	if use := useLine(cmd); use != "" {
		fmt.Fprintf(&b, "Usage: %s\n\n", use)
	}
	if details != "" {
		b.WriteString(details + "\n\n")
	}
	writeCommands(&b, cmd)
	groups, see := flagsOf(cmd)
	for _, fs := range groups {
		fmt.Fprintf(&b, "%s:\n%s\n", fs.Name(), flagLines(fs))
	}
	if len(see) > 0 {
		b.WriteString(wrap("More flags: "+strings.Join(see, ", ")) + "\n")
	}
	return about + "\n", strings.TrimRight(b.String(), "\n") + "\n"
}

// useLine is how a command is called.
func useLine(cmd *cobra.Command) string {
	switch {
	case cmd.HasSubCommands() && cmd.Name() != "bench":
		return cmd.CommandPath() + " COMMAND [flags]"
	case cmd.Runnable():
		return cmd.UseLine()
	}
	return ""
}

// flagLines lists flags in two columns.
func flagLines(fs *pflag.FlagSet) string {
	var left, right []string
	width := 0
	fs.VisitAll(func(f *pflag.Flag) {
		name, usage := pflag.UnquoteUsage(f)
		text := "  --" + f.Name
		if f.Shorthand != "" {
			text = "  -" + f.Shorthand + ", --" + f.Name
		}
		if name != "" && f.NoOptDefVal == "" {
			text += " " + name
		}
		if !slices.Contains([]string{"", "0", "0s", "false", "[]"}, f.DefValue) {
			usage += " (default " + strings.Replace(f.DefValue, "m0s", "m", 1) + ")"
		}
		left, right = append(left, text), append(right, usage)
		if n := len(text); n <= flagColumn {
			width = max(width, n)
		}
	})
	var b strings.Builder
	for i := range left {
		indent := strings.Repeat(" ", width+2)
		text := strings.ReplaceAll(figure.Wrap(right[i], helpWidth-width-2, ""), "\n", "\n"+indent)
		if pad := width - len(left[i]); pad >= 0 {
			b.WriteString(left[i] + strings.Repeat(" ", pad+2) + text + "\n")
		} else {
			b.WriteString(left[i] + "\n" + indent + text + "\n")
		}
	}
	return b.String()
}

// flagColumn is the most columns of the flags themselves.
const flagColumn = 34

// wrap breaks the lines of a text anew. Paragraphs with indented lines are tables and
// stay as they are.
func wrap(text string) string {
	paragraphs := strings.Split(text, "\n\n")
	for i, p := range paragraphs {
		if !isTable(p) {
			paragraphs[i] = figure.Wrap(p, helpWidth, "")
		}
	}
	return strings.Join(paragraphs, "\n\n")
}

// isTable tells whether a paragraph of a help text has indented lines.
func isTable(paragraph string) bool {
	return strings.HasPrefix(paragraph, " ") || strings.Contains(paragraph, "\n ")
}

// writeCommands lists the subcommands in their groups, and then the topics.
func writeCommands(out io.Writer, cmd *cobra.Command) {
	list := func(title string, of func(sub *cobra.Command) bool) {
		var b strings.Builder
		for _, sub := range cmd.Commands() {
			if of(sub) {
				b.WriteString(listLine(sub.Name(), sub.Short) + "\n")
			}
		}
		if b.Len() > 0 {
			fmt.Fprintf(out, "%s:\n%s", title, b.String())
		}
	}
	for _, g := range cmd.Groups() {
		list(g.Title, func(sub *cobra.Command) bool { return sub.GroupID == g.ID && sub.IsAvailableCommand() })
	}
	list("Commands", func(sub *cobra.Command) bool { return sub.GroupID == "" && sub.IsAvailableCommand() })
	var topics []string
	for _, sub := range cmd.Commands() {
		if sub.IsAdditionalHelpTopicCommand() {
			topics = append(topics, sub.Name())
		}
	}
	if len(topics) > 0 {
		fmt.Fprintln(out, figure.Wrap("Topics of tuner help: "+strings.Join(topics, ", "), helpWidth, ""))
	}
	if cmd.HasAvailableSubCommands() {
		fmt.Fprintln(out)
	}
}

// listLine is an entry of a list, which may have several lines.
func listLine(name, text string) string {
	const column = 15
	return fmt.Sprintf("  %-*s%s", column, name, strings.ReplaceAll(figure.Wrap(text, helpWidth-column-2, ""), "\n", "\n"+strings.Repeat(" ", column+2)))
}

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
				return nothing()
			}
			var list []string
			for _, sub := range about.Commands() {
				if sub.IsAvailableCommand() || sub.IsAdditionalHelpTopicCommand() {
					list = append(list, cobra.CompletionWithDesc(sub.Name(), sub.Short))
				}
			}
			return beginning(list, toComplete), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			about, rest, err := cmd.Root().Find(args)
			if about == nil {
				return err
			}
			// Find checks the arguments of the program, but not those of its commands.
			if len(rest) > 0 || err != nil {
				return noArgs(about, rest)
			}
			return about.Help()
		},
	}
}

// newTopics returns the help pages that belong to no single command.
func newTopics() []*cobra.Command {
	return []*cobra.Command{
		{
			Use:   "exit-codes",
			Short: "Exit codes of all commands",
			Long: `The exit code of a command says what happened. A code never changes its meaning.

` + exitHelp(),
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
  BKB_DATA      folder of real data for tuner bench

A command that tuner run starts also has TUNER_TRIAL, TUNER_EPOCH, TUNER_LEASE,
TUNER_CONFIG and one TUNER_PARAM_NAME for each parameter.`,
			Example: "  TUNER_SERVER=tuner.example.org:7070 tuner studies",
		},
		newConnectionTopic(),
		newDataTopic(),
		newLimitsTopic(),
		newOptunaTopic(),
		newServersTopic(),
	}
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

func newDataTopic() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "data",
		Short: "Files of data for the learners",
		Long: `The learners read CSV and similar text, libsvm, .npy, .npz, Parquet and IDX files,
each perhaps gzipped. The file - is stdin.

Format, delimiter, header and target are detected and reported on stderr. The flags
below set them. A column is named by its name or its position (1 is the first, -1
the last). A row without a target is left out of training, and stderr has the
count. An empty cell is a missing value.

Inputs and targets are standardised. Text columns are one-hot encoded.

Several files give one table. A quoted pattern such as 'part-*.parquet' stands for the
files that match, in the order of their names. With --chunk-file the memory does not
grow with their number.`,
		Example: "  tuner train falkon --data housing.csv --target price --missing '?,n/a' \\\n    --impute median --out price.model",
	}
	var d dataFlags
	var e encodingFlags
	d.add(cmd)
	d.addTarget(cmd)
	e.add(cmd)
	return cmd
}

func newLimitsTopic() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "limits",
		Short: "Limits of a server",
		Long: `A server refuses what exceeds its limits. These are flags of tuner serve. A negative
number means no limit.

The limits of calls, watches and rates protect the clients from each other. The
limits of stored bytes and reports protect the disk.`,
		Example: "  tuner serve --rate 500 --max-file 17179869184",
	}
	var s serving
	s.addLimits(cmd)
	return cmd
}

func newOptunaTopic() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "optuna",
		Short: "Optuna's storage on a server",
		Long: `With tuner serve --optuna, scripts and dashboards of Optuna use the file of the server
as their storage, through Optuna's GrpcStorageProxy. See docs/optuna.md.

Optuna's clients send no token and use no TLS. So every process on this machine can
read and change the studies of Optuna, and no other studies. From other machines,
use a tunnel such as ssh -L.`,
		Example: "  tuner serve --optuna 127.0.0.1:13000",
	}
	var s serving
	flagGroup(cmd, optunaPage, s.optuna.flags)
	return cmd
}

func newServersTopic() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "servers",
		Short: "Several servers of one database",
		Long: `Several servers can serve one PostgreSQL database. Each answers every call, and clients
can use any of them or a load balancer. A study has one server at a time, and the
others forward its calls there. If a server dies, the others take over its studies.
See docs/deploy.md.

Servers on other machines need TLS and client certificates with the scope peer. They
use --cert and --key as their own, and --client-ca for the certificates of the others.`,
		Example: `  tuner serve --store postgres://tuner@db1,db2/tuner --listen 0.0.0.0:7070 \
    --advertise tuner-1.example.org:7070 --cert server.pem --key server.key \
    --tokens tokens.json --client-ca ca.pem \
    --client-scope tuner-1.example.org=peer \
    --client-scope tuner-2.example.org=peer`,
	}
	var s serving
	flagGroup(cmd, serversPage, s.cluster.flags)
	return cmd
}
