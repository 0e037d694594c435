package server

import (
	"context"
	"fmt"
	"time"

	"github.com/bkbtuner/bkb/cmd/tuner/cli"
	"github.com/bkbtuner/bkb/tuner/client"
	"github.com/spf13/cobra"
)

func newHealth(g *cli.Globals) *cobra.Command {
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "health",
		Short: "Probe a server",
		Long: `Health asks a server once whether it serves, and prints SERVING or NOT_SERVING.

It is for probes of Kubernetes, systemd and load balancers. It needs no token. The exit
code is 0 if the server serves, and another one in all other cases.`,
		Example: "  tuner --server localhost:7070 health\n  tuner --server node7:7070 --ca ca.pem health --timeout 1s",
		Args:    cli.Exactly(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			address := g.Address()
			if address == "" {
				return cli.Usagef("health needs a server: name it with --server or in TUNER_SERVER")
			}
			if timeout <= 0 {
				return cli.Usagef("--timeout must be above 0")
			}
			svc, err := g.Dial(cmd, address)
			if err != nil {
				return err
			}
			defer svc.Close()
			c, ok := svc.(*client.Client)
			if !ok {
				return fmt.Errorf("%s is no server", address)
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), timeout)
			defer cancel()
			serving, err := c.Healthy(ctx)
			if err != nil {
				return err
			}
			if !serving {
				fmt.Fprintln(cmd.OutOrStdout(), "NOT_SERVING")
				return cli.Exit(cli.ExitFailure, fmt.Errorf("%s answers that it does not serve", address))
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), "SERVING")
			return err
		},
	}
	cmd.Flags().DurationVar(&timeout, "timeout", 5*time.Second, "longest wait for the answer")
	return cmd
}
