package client

import (
	"net/url"
	"slices"
	"strings"
	"sync"

	"google.golang.org/grpc/resolver"
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

// several resolves the names of several servers into one list of addresses, in their order.
// gRPC connects to the first that can be reached, and again when that connection breaks. It
// implements [resolver.Builder].
type several []string

func (several) Scheme() string { return "several" }

// OverrideAuthority is the authority of all calls. Certificates are checked against the
// names of their servers.
func (s several) OverrideAuthority(resolver.Target) string { return s[0] }

func (s several) Build(_ resolver.Target, cc resolver.ClientConn, o resolver.BuildOptions) (resolver.Resolver, error) {
	l := &list{cc: cc, found: make([][]resolver.Endpoint, len(s))}
	for i, name := range s {
		target := resolver.Target{URL: url.URL{Scheme: "dns", Path: "/" + name}}
		r, err := resolver.Get("dns").Build(target, item{cc, l, i, name}, o)
		if err != nil {
			l.Close()
			return nil, err
		}
		l.names = append(l.names, r)
	}
	return l, nil
}

// list is the resolver of several names. It implements [resolver.Resolver].
type list struct {
	cc    resolver.ClientConn
	names []resolver.Resolver

	mu    sync.Mutex
	found [][]resolver.Endpoint // of each name
}

func (l *list) ResolveNow(o resolver.ResolveNowOptions) {
	for _, r := range l.names {
		r.ResolveNow(o)
	}
}

func (l *list) Close() {
	for _, r := range l.names {
		r.Close()
	}
}

// item is what the resolver of one name reports to.
type item struct {
	resolver.ClientConn
	list *list
	i    int
	name string
}

func (e item) UpdateState(s resolver.State) error {
	for _, end := range s.Endpoints {
		for i := range end.Addresses {
			end.Addresses[i].ServerName = e.name
		}
	}
	e.list.mu.Lock()
	defer e.list.mu.Unlock()
	e.list.found[e.i] = s.Endpoints
	return e.list.cc.UpdateState(resolver.State{Endpoints: slices.Concat(e.list.found...)})
}

// ReportError passes an error on while no name has an address.
func (e item) ReportError(err error) {
	e.list.mu.Lock()
	defer e.list.mu.Unlock()
	if len(slices.Concat(e.list.found...)) == 0 {
		e.list.cc.ReportError(err)
	}
}
