package engine

import (
	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/propose"
	"github.com/bkbtuner/bkb/tuner/prune"
)

// Components lists the proposers and pruners of new studies.
func Components() (c tuner.Components) {
	for _, name := range propose.Names() {
		c.Proposers = append(c.Proposers, tuner.Component{Name: name, Options: propose.Options(name)})
	}
	for _, name := range prune.Names() {
		c.Pruners = append(c.Pruners, tuner.Component{Name: name, Options: prune.Options(name)})
	}
	return c
}
