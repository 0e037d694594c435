// Package planted has the bugs that tests plant into the product, to show that they would
// find them. The product does not know this package. The test TestPlanted builds it with
// the places of bugs.txt replaced, by an overlay.
package planted

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/metadata"
)

// now is the bug that is switched on. It is nil before the first call of Is.
var now atomic.Pointer[string]

// Is reports whether a bug is switched on, by [Set] or else by BKB_PLANTED.
func Is(bug string) bool {
	set := now.Load()
	if set == nil {
		set = new(string)
		*set = os.Getenv("BKB_PLANTED")
		now.CompareAndSwap(nil, set)
	}
	return *set == bug
}

// Set switches on a bug. The empty name switches off the current one.
func Set(bug string) { now.Store(&bug) }

// Token returns the token of a call, for bugs that leak it.
func Token(ctx context.Context) string {
	return strings.TrimPrefix(strings.Join(metadata.ValueFromIncomingContext(ctx, "authorization"), ""), "Bearer ")
}

// Sleep has for the address of a server a function that returns for how long its machine was
// suspended.
var Sleep sync.Map

// Monotonic makes of a clock one that stops while the machine of a server is suspended.
func Monotonic(address string, clock func() time.Duration) func() time.Duration {
	return func() time.Duration {
		now := clock()
		if asleep, ok := Sleep.Load(address); ok {
			now -= asleep.(func() time.Duration)()
		}
		return now
	}
}

// Bug is a bug with its places.
type Bug struct {
	Name   string
	Places []Place
}

// Place is where a bug stands in the product.
type Place struct {
	File     string // relative to the module
	Old, New string // whole lines. Old is in the file once
}

//go:embed bugs.txt
var text string

// Bugs reads the bugs.
func Bugs() ([]Bug, error) {
	var bugs []Bug
	for n, line := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
		var b *Bug
		var p *Place
		if len(bugs) > 0 {
			if b = &bugs[len(bugs)-1]; len(b.Places) > 0 {
				p = &b.Places[len(b.Places)-1]
			}
		}
		name, isBug := strings.CutPrefix(line, "bug ")
		file, isFile := strings.CutPrefix(line, "file ")
		switch {
		case line == "", line[0] == '#':
		case isBug:
			name, _, _ = strings.Cut(name, ":")
			bugs = append(bugs, Bug{Name: name})
		case isFile && b != nil:
			b.Places = append(b.Places, Place{File: file})
		case line[0] == '-' && p != nil:
			p.Old += line[1:] + "\n"
		case line[0] == '+' && p != nil:
			p.New += line[1:] + "\n"
		default:
			return nil, fmt.Errorf("bugs.txt, line %d: %q is not understood", n+1, line)
		}
	}
	return bugs, nil
}
