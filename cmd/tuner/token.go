package main

import (
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/bkbtuner/bkb/tuner/server"
	"github.com/spf13/cobra"
)

func newToken(g *globals) *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use:   "token",
		Short: "Make, list and revoke the tokens of a server",
		Long: `Token works on a server's file of tokens, offline: a running server reads it again when
it changes. The file has mode 0600 and holds no token, only what recognises one.`,
		Example: "  tuner token add --scope worker:digits --label 'node 7' > token\n  tuner token list\n  tuner token revoke 1a2b3c4d",
		Args:    noArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.PersistentFlags().StringVar(&file, "tokens", "", "the `file` of tokens (default: $TUNER_TOKENS, else tokens.json)")
	path := func() string {
		if f := tokensFile(file); f != "" {
			return f
		}
		return "tokens.json"
	}
	cmd.AddCommand(newTokenAdd(g, path), newTokenList(path), newTokenRevoke(g, path))
	return cmd
}

func newTokenAdd(g *globals, path func() string) *cobra.Command {
	var scopeText, label string
	var expires time.Duration
	var workers []string
	cmd := &cobra.Command{
		Use:   "add",
		Short: "Make a token and print it, this once",
		Long: `Add makes a token, prints it on stdout, and adds it to the file, which is made if there
is none. Nobody can print it again.

SCOPES
  admin               everything
  read                look, export, backup excluded
  worker              look, ask, tell, report, heartbeat, enqueue
  worker:STUDY,STUDY  the same, for these studies only

--worker binds worker names to the token. It then works under these names only, and no
other worker can ask under them, or report or tell a trial that they run. Admins can.`,
		Example: "  (umask 077; tuner token add --scope worker --expires 720h > token)",
		Args:    exactly(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			scope, err := server.ParseScope(scopeText)
			if err != nil {
				return usagef("--scope: %w", err)
			}
			var end time.Time
			if expires < 0 {
				return usagef("--expires must not be negative")
			} else if expires > 0 {
				end = time.Now().Add(expires)
			}
			token, info, err := server.AddWorkerToken(path(), scope, workers, label, end)
			if err != nil {
				return err
			}
			g.note(cmd, "Added token %s (%s) to %s. It is shown this once.", info.ID, info.Scope, path())
			_, err = fmt.Fprintln(cmd.OutOrStdout(), token.Reveal())
			return err
		},
	}
	cmd.Flags().StringVar(&scopeText, "scope", "worker", "what its bearer may do: admin, read, worker, or worker:study,study…")
	cmd.Flags().StringArrayVar(&workers, "worker", nil, "worker `name` to bind to the token; repeat for more (default: all names that are not bound)")
	cmd.Flags().StringVar(&label, "label", "", "whose it is, for people")
	cmd.Flags().DurationVar(&expires, "expires", 0, "for how long it is valid, as 720h (0: for ever)")
	return cmd
}

func newTokenList(path func() string) *cobra.Command {
	var form *format
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List what is known of the tokens",
		Long:    `List lists the tokens of the file, oldest first: not the tokens themselves.`,
		Example: "  tuner token list -f json",
		Args:    exactly(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			tokens, err := server.ListTokens(path())
			if errors.Is(err, fs.ErrNotExist) {
				return &statusError{exitNotFound, fmt.Errorf("there is no file %s; tuner token add makes one", path())}
			} else if err != nil {
				return err
			}
			if form.value != "table" {
				s := &listSink{out: cmd.OutOrStdout(), format: form.value}
				for _, t := range tokens {
					if err := s.put(t); err != nil {
						return err
					}
				}
				return s.end()
			}
			table := newTable(cmd.OutOrStdout(), "ID", "SCOPE", "CREATED", "EXPIRES", "LABEL")
			for _, t := range tokens {
				table.row(t.ID, t.Scope.String(), t.Created.Format(time.DateOnly), expiryText(t), t.Label)
			}
			return table.end()
		},
	}
	form = formatFlag(cmd, "table", "json", "jsonl", "yaml")
	return cmd
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

func newTokenRevoke(g *globals, path func() string) *cobra.Command {
	return &cobra.Command{
		Use:   "revoke ID",
		Short: "Make a token invalid",
		Long: `Revoke removes a token from the file, by the id that list shows. A running server
refuses it at once.`,
		Example: "  tuner token revoke 1a2b3c4d",
		Args:    exactly(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := server.RevokeToken(path(), args[0]); err != nil {
				return &statusError{exitNotFound, err}
			}
			g.note(cmd, "Revoked token %s.", args[0])
			return nil
		},
	}
}
