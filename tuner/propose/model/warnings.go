package model

import "fmt"

// Warnings returns messages about settings of the study that have no effect, and what to do.
func (e *Engine) Warnings() []string {
	r := e.Results
	out := r.untold()
	n := len(r.List)
	if r.options.Cost != CostIgnored && e.expense == nil {
		known := 0
		for i := range r.List {
			if r.List[i].Cost > 0 {
				known++
			}
		}
		what, remedy := "were told with a cost", "tell a cost with each outcome (--cost)"
		if r.options.Cost == CostSeconds {
			what, remedy = "have a running time", "run trials, because added ones have no time"
		}
		out = append(out, fmt.Sprintf("the proposer's option cost has no effect: %d of %d results %s, and a model of costs needs 2; %s, or leave the option out", known, n, what, remedy))
	}
	if r.spec.MaxCost > 0 && r.Spent == 0 {
		text := "the study's max_cost is not spent: "
		if costly := r.Costly; costly > 0 { // a trial that was handed out would have spent it
			text += fmt.Sprintf("%d of %d results have a cost, but they are added trials, which do not count; end the study by max_trials too", costly, n)
		} else {
			text += fmt.Sprintf("none of %d results was told with a cost, and only told costs count; tell a cost with each outcome (--cost)", n)
		}
		if r.options.Cost != CostIgnored {
			text += "; costs have their full weight until some is spent"
		}
		out = append(out, text)
	}
	return out
}

// untold returns a message for each constraint whose metric no result has.
func (r *Results) untold() []string {
	var out []string
	for i, c := range r.options.Constraints {
		if n := len(r.List); n > 0 && r.constrained[i] == 0 {
			out = append(out, fmt.Sprintf("the constraint on %s cannot be kept: none of %d results was told with this metric; tell it with each outcome, or correct its name in a new study", c.metric, n))
		}
	}
	return out
}
