package server

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/bkbtuner/bkb/cmd/tuner/cli"
	"github.com/bkbtuner/bkb/tuner/server"
	"github.com/spf13/cobra"
)

func newToken(g *cli.Globals) *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use:   "token",
		Short: "Manage the tokens of a server",
		Long: `Token adds, lists and revokes tokens in the token file of a server.

It needs no running server. A running server reads the file again when it changes. The
file has mode 0600. It holds hashes, not the tokens themselves.`,
		Example: "  (umask 077; tuner token add --scope worker:digits --label 'node 7' > token)\n  tuner token list\n  tuner token revoke 1a2b3c4d",
		Args:    cli.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.PersistentFlags().StringVar(&file, "tokens", "", "token `file` (default $TUNER_TOKENS, else tokens.json)")
	path := func() string { return cmp.Or(tokensFile(file), "tokens.json") }
	cmd.AddCommand(newTokenAdd(g, path), newTokenList(path), newTokenRevoke(g, path))
	return cmd
}

func newTokenAdd(g *cli.Globals, path func() string) *cobra.Command {
	var scopeText, label string
	var expires time.Duration
	var workers []string
	cmd := &cobra.Command{
		Use:   "add",
		Short: "Add a token and print it once",
		Long: `Add makes a token, prints it on stdout, and adds its hash to the token file. The file
is created if it is missing. The token cannot be printed again.

Scopes:
  admin               everything
  read                reading and export, without backup
  worker              read, ask, tell, report, heartbeat, enqueue
  worker:STUDY,STUDY  the same for these studies only

With --worker the token works under these worker names only. Other workers cannot ask
under these names, and cannot report or tell trials that run under them. Admins can.`,
		Example: "  (umask 077; tuner token add --scope worker --expires 720h > token)",
		Args:    cli.Exactly(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			scope, err := server.ParseScope(scopeText)
			if err != nil {
				return cli.Usagef("--scope: %w", err)
			}
			var end time.Time
			if expires < 0 {
				return cli.Usagef("--expires must not be negative")
			} else if expires > 0 {
				end = time.Now().Add(expires)
			}
			token, info, err := server.AddToken(path(), scope, label, end, workers...)
			if err != nil {
				return err
			}
			g.Note(cmd, "Added token %s (%s) to %s. It is shown only once.", info.ID, info.Scope, path())
			_, err = fmt.Fprintln(cmd.OutOrStdout(), token.Reveal())
			return err
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVar(&scopeText, "scope", "worker", "`scope` of the token, admin, read, worker, or worker:study,study…")
	f.StringArrayVar(&workers, "worker", nil, "worker `name` bound to the token, repeatable (default all unbound names)")
	f.StringVar(&label, "label", "", "`text` that says whose token it is")
	f.DurationVar(&expires, "expires", 0, "time until the token expires, such as 720h (default never)")
	cli.Register(cmd, "scope", cli.Words("admin", "read", "worker"))
	return cmd
}

func newTokenList(path func() string) *cobra.Command {
	var form *string
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List the tokens",
		Long:    `List shows the id, scope, dates and label of each token in the file, oldest first.`,
		Example: "  tuner token list -f json",
		Args:    cli.Exactly(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			tokens, err := server.ListTokens(path())
			if errors.Is(err, fs.ErrNotExist) {
				return noTokenFile(path())
			} else if err != nil {
				return err
			}
			out := cmd.OutOrStdout()
			table := cli.NewTable(out, "ID", "SCOPE", "CREATED", "EXPIRES", "LABEL")
			return cli.WriteList(out, *form, tokens, table, func(t server.TokenInfo) []string {
				return []string{t.ID, t.Scope.String(), t.Created.Format(time.DateOnly), expiryText(t), t.Label}
			})
		},
	}
	form = cli.FormatFlag(cmd, "table", "json", "jsonl", "yaml")
	return cmd
}

func noTokenFile(path string) error {
	return cli.Exit(cli.ExitNotFound, fmt.Errorf("there is no token file %s; name it with --tokens, or create it with tuner token add", path))
}

func expiryText(t server.TokenInfo) string {
	switch {
	case t.Expires.IsZero():
		return "never"
	case t.Expired(time.Now()):
		return "expired"
	default:
		return t.Expires.Format(time.DateOnly)
	}
}

func newTokenRevoke(g *cli.Globals, path func() string) *cobra.Command {
	return &cobra.Command{
		Use:   "revoke ID",
		Short: "Revoke a token",
		Long: `Revoke removes a token from the file. The id is that of tuner token list. A running
server refuses the token at once.`,
		Example: "  tuner token revoke 1a2b3c4d",
		Args:    cli.Exactly(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			err := server.RevokeToken(path(), args[0])
			if errors.Is(err, fs.ErrNotExist) {
				return noTokenFile(path())
			} else if err != nil {
				return cli.Exit(cli.ExitNotFound, err)
			}
			g.Note(cmd, "Revoked token %s.", args[0])
			return nil
		},
	}
}
