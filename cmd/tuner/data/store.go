package data

import (
	"fmt"

	"github.com/bkbtuner/bkb/cmd/tuner/cli"
	"github.com/bkbtuner/bkb/store/postgres"
	"github.com/spf13/cobra"
)

func newStore(g *cli.Globals) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "store",
		Short: "Prepare a database for studies",
		Long: `Store makes and upgrades the tables of a store in a PostgreSQL database.

The database is named by --store, TUNER_STORE or an argument. The role in the address
must own the tables. Other commands need only a role to which --grant gave its rights.`,
		Example: "  tuner store init postgres://owner@db.example.org/tuner --grant tuner",
		Args:    cli.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	o := postgres.InitOptions{Program: "tuner " + cli.Version()}
	initialise := &cobra.Command{
		Use:   "init [URL]",
		Short: "Make the tables of a store in a database",
		Long: `Init makes the tables of a store in a schema of its own, bkb unless the address names
another (?schema=NAME). If they are there already, it changes nothing but the rights of
--grant.`,
		Example: "  tuner store init postgres://owner@db.example.org/tuner --grant tuner",
		Args:    cli.Between(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			address, err := storeAddress(g, cmd, args)
			if err != nil {
				return err
			}
			id, made, err := postgres.Init(cmd.Context(), address, o)
			if err != nil {
				return cli.DatabaseError(err)
			}
			verb := "Found"
			if made {
				verb = "Made"
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s store %s, format %d\n", verb, id.Store[:8], id.Format)
			return err
		},
	}
	upgrade := &cobra.Command{
		Use:   "upgrade [URL]",
		Short: "Upgrade the tables of a store in a database",
		Long: `Upgrade changes the tables of a store to the format of this program. Stop all servers
and commands that use the store first, because older programs refuse the new format.`,
		Example: "  tuner store upgrade postgres://owner@db.example.org/tuner",
		Args:    cli.Between(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			address, err := storeAddress(g, cmd, args)
			if err != nil {
				return err
			}
			id, from, err := postgres.Upgrade(cmd.Context(), address, o)
			if err != nil {
				return cli.DatabaseError(err)
			}
			text := fmt.Sprintf("Upgraded store %s from format %d to %d", id.Store[:8], from, id.Format)
			if from == id.Format {
				text = fmt.Sprintf("Store %s has format %d already", id.Store[:8], id.Format)
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), text)
			return err
		},
	}
	for _, c := range []*cobra.Command{initialise, upgrade} {
		c.Flags().StringVar(&o.Grant, "grant", "", "`role` that gets the rights to read and write studies")
	}
	cmd.AddCommand(cli.Connects(cli.ToDatabase, initialise, upgrade)...)
	return cmd
}

// storeAddress is the database of a command, from its argument or from --store.
func storeAddress(g *cli.Globals, cmd *cobra.Command, args []string) (string, error) {
	switch {
	case len(args) > 0:
		return args[0], nil
	case g.Database() != "":
		return g.Database(), nil
	default:
		return "", cli.Usagef("%s needs a database; name it as postgres://USER@HOST/DATABASE in an argument, --store or TUNER_STORE", cmd.CommandPath())
	}
}
