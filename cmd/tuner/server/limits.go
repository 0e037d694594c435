package server

import (
	"fmt"

	"github.com/bkbtuner/bkb/tuner/server"
	"github.com/spf13/pflag"
)

// limitFlags adds a flag for each limit of a server.
func limitFlags(fs *pflag.FlagSet, l *server.Limits) {
	fs.Float64Var(&l.Rate, "rate", 0, "calls per second with one token (default 200)")
	for _, f := range []struct {
		to    *int
		name  string
		most  int
		usage string
	}{
		{&l.MaxConnections, "max-connections", 2000, "open connections"},
		{&l.MaxConnectionsPerAddress, "max-connections-per-address", 1000, "open connections from one IP address"},
		{&l.MaxStrangers, "max-strangers", 1024, "open connections without a valid token or certificate"},
		{&l.MaxStrangersPerAddress, "max-strangers-per-address", 512, "such connections from one IP address"},
		{&l.MaxHealthWatches, "max-health-watches", 256, "health watches at once"},
		{&l.MaxHealthWatchesPerAddress, "max-health-watches-per-address", 32, "health watches at once from one IP address"},
		{&l.MaxInFlight, "max-calls", 4096, "calls at once, the last tenth for admins"},
		{&l.MaxInFlightPerToken, "max-calls-per-token", 1024, "calls at once with one token"},
		{&l.MaxInFlightPerStudy, "max-calls-per-study", 2048, "calls at once to one study"},
		{&l.MaxWatches, "max-watches", 1000, "watches at once, the last tenth for admins"},
		{&l.MaxWatchesPerToken, "max-watches-per-token", 200, "watches at once with one token"},
		{&l.MaxWatchesPerStudy, "max-watches-per-study", 500, "watches at once of one study"},
	} {
		fs.IntVar(f.to, f.name, 0, fmt.Sprintf("%s (default %d)", f.usage, f.most))
	}
	fs.Float64Var(&l.WriteRate, "write-rate", 0, "bytes per second of changes with one token (default 2097152)")
}
