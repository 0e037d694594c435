package server

import "github.com/spf13/cobra"

// Topics returns the help pages about servers.
func Topics() []*cobra.Command { return []*cobra.Command{newLimitsTopic(), newServersTopic()} }

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
	s.addServers(cmd)
	return cmd
}
