package bo

import "github.com/bkbtuner/bkb/internal/problems"

// classic is test functions that everybody has.
var classic = Suite{
	Name: "classic", Title: "Classic test functions", Source: "package internal/problems", Log: true,
	Problems: []Listed{
		maximised("classic/branin", Smoke, problems.Branin{}),
		maximised("classic/hartmann6", Standard, problems.Hartmann6{}),
		maximised("classic/ackley5", Standard, problems.Ackley{Dim: 5, Shift: 1.3}),
	},
}
