// Package papers repeats the figures and tables of the papers, and measures the project's
// promises. Package bench describes how to write an experiment.
package papers

import (
	"fmt"
	"strings"

	"github.com/bkbtuner/bkb/bench/experiment"
)

// All returns the experiments, in the order of the papers.
func All() []experiment.Experiment {
	return []experiment.Experiment{
		fig31, fig32, table41, fig41, fig51, fig52, table51, fig53, fig54, bless, softmax, fig71,
		averaged, averagedMNIST, online, exactness, regret, steps, auto,
	}
}

// NameError reports an experiment that does not exist.
type NameError struct {
	Name  string
	Names []string // the existing ones
}

func (e *NameError) Error() string {
	return fmt.Sprintf("bench: there is no experiment %q; the experiments are %s", e.Name, strings.Join(e.Names, ", "))
}

// Find returns the experiment of a name. The error is a [*NameError].
func Find(name string) (experiment.Experiment, error) {
	var names []string
	for _, e := range All() {
		if e.Name == name {
			return e, nil
		}
		names = append(names, e.Name)
	}
	return experiment.Experiment{}, &NameError{name, names}
}
