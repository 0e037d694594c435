package client

import (
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/resolver/manual"
)

// Addresses splits the address of [Dial] into those of its servers.
func Addresses(address string) []string {
	if strings.HasPrefix(address, "unix:") {
		return []string{address} // a path may have a comma
	}
	list := strings.Split(address, ",")
	for i, one := range list {
		list[i] = strings.TrimSpace(one)
	}
	return list
}

// several returns the target of several servers. gRPC connects to the first that can be
// reached, and again when that connection breaks. Connecting looks up the names. The
// certificate of each server is checked against its own name.
func several(servers []string) (target string, option grpc.DialOption) {
	const scheme = "several"
	state := resolver.State{}
	for _, name := range servers {
		state.Addresses = append(state.Addresses, resolver.Address{Addr: name, ServerName: name})
	}
	list := manual.NewBuilderWithScheme(scheme)
	list.InitialState(state)
	return scheme + ":///" + servers[0], grpc.WithResolvers(list)
}
