package model

import "fmt"

// Warnings say what of the study's settings comes to nothing.
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
		what := "were told with a cost"
		if r.options.Cost == CostSeconds {
			what = "say how long they ran"
		}
		out = append(out, fmt.Sprintf("the proposer's option cost weighs nothing: %d of %d results %s, and it takes 2 when a model is made", known, n, what))
	}
	if r.spec.MaxCost > 0 && r.Spent == 0 {
		text := "nothing of the study's max_cost is spent: "
		if costly := r.Costly; costly > 0 { // a trial that was handed out would have spent it
			text += fmt.Sprintf("the costs that %d of %d results were told with are those of added trials, which do not count towards it", costly, n)
		} else {
			text += fmt.Sprintf("none of %d results was told with a cost, and only told costs count", n)
		}
		if r.options.Cost != CostIgnored {
			text += "; costs weigh in full until something is"
		}
		out = append(out, text)
	}
	return out
}

// untold says of which constraints no result knows anything.
func (r *Results) untold() []string {
	var out []string
	for i, c := range r.options.Constraints {
		if n := len(r.List); n > 0 && r.constrained[i] == 0 {
			out = append(out, fmt.Sprintf("the constraint on %s cannot be kept: none of %d results was told with it", c.metric, n))
		}
	}
	return out
}
