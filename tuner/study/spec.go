package study

import (
	"encoding/json"
	"fmt"
	"iter"
	"math"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/bkbtuner/bkb/tuner/space"
)

// Spec holds the settings of a study. After the creation only its limits change, by [Extend]. Its JSON is part
// of stored records, and each setting has the same name there, in the wire's StudySpec and
// in what programs print.
type Spec struct {
	// Space is the search space.
	Space *space.Space `json:"space"`
	// Objectives lists at least one objective, with distinct names.
	Objectives []Objective `json:"objectives,omitempty"`
	// MaxTrials ends the study when it has that many trials, without added and cancelled
	// ones, and all of them are over. 0 means no limit.
	MaxTrials int `json:"max_trials"`
	// Timeout ends the study that long after its creation. 0 means no limit.
	Timeout time.Duration `json:"timeout"`
	// MaxCost ends the study when the sum of the told costs, including those of late
	// results, reaches it. 0 means no limit.
	MaxCost float64 `json:"max_cost"`
	// Patience ends the study when that many trials in a row have completed, been pruned or
	// infeasible without a better value. 0 means no limit. It needs one objective, as Target.
	Patience int `json:"patience,omitempty"`
	// Target ends the study when a trial is as good. nil means none.
	Target *float64 `json:"target,omitempty"`
	// Lease is how long a worker holds a trial without a heartbeat, unless it asks for
	// another time. 0 means [DefaultLease].
	Lease time.Duration `json:"lease"`
	// MaxRetries is how often a trial whose lease expired is handed out again before it
	// fails. 0 means that it fails at the first expiry.
	MaxRetries int `json:"max_retries"`
	// Seed is the seed of the study's random numbers.
	Seed uint64 `json:"seed"`
	// Proposer and Pruner name and configure the components that suggest and stop
	// trials. A service puts the name of its default in place of an empty proposer. An
	// empty pruner is none.
	Proposer Component `json:"proposer"`
	Pruner   Component `json:"pruner"`
	// Attributes are the user's own notes. They can also be set later.
	Attributes Attributes `json:"attributes,omitempty"`
}

// Settings yields the name of each setting with a pointer to its field.
func (c *Spec) Settings() iter.Seq2[string, any] {
	return func(yield func(string, any) bool) {
		v := reflect.ValueOf(c).Elem()
		for i := range v.NumField() {
			name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
			if !yield(name, v.Field(i).Addr().Interface()) {
				return
			}
		}
	}
}

func (c Spec) normalize() (Spec, error) {
	if c.Space == nil {
		return c, invalid("space", "none", "a study needs a search space", "")
	}
	if size := len(spaceText(c.Space)); size > space.MaxFileBytes {
		return c, invalid("space", fmt.Sprintf("%d bytes of JSON", size), "must be at most 1 MiB", "use fewer parameters or values")
	}
	if err := checkObjectives(c.Objectives); err != nil {
		return c, err
	}
	if c.Lease == 0 {
		c.Lease = DefaultLease
	}
	if err := c.checkLimits(); err != nil {
		return c, err
	}
	one := len(c.Objectives) == 1
	switch {
	case c.Patience < 0 || c.Patience > MaxTrials:
		return c, invalid("patience", c.Patience, "must be 0 (no limit) to 10000000", "")
	case c.Patience > 0 && !one:
		return c, invalid("patience", c.Patience, "needs a study of one objective", "leave it out")
	case c.Target != nil && (math.IsNaN(*c.Target) || math.IsInf(*c.Target, 0)):
		return c, invalid("target", *c.Target, "must be finite", "leave it out for none")
	case c.Target != nil && !one:
		return c, invalid("target", *c.Target, "needs a study of one objective", "leave it out")
	case c.Lease < MinLease || c.Lease > MaxLease:
		return c, invalid("lease", c.Lease, "must be 1s to 8784h", "")
	case c.MaxRetries < 0 || c.MaxRetries > MaxRetriesLimit:
		return c, invalid("max_retries", c.MaxRetries, "must be 0 to 1000", "")
	}
	for field, p := range map[string]Component{"proposer": c.Proposer, "pruner": c.Pruner} {
		if err := p.check(field); err != nil {
			return c, err
		}
	}
	if err := checkAttributes("attributes", nil, c.Attributes); err != nil {
		return c, err
	}
	c.Objectives = slices.Clone(c.Objectives)
	c.Attributes = merge(nil, c.Attributes)
	return c, nil
}

func (c Spec) checkLimits() error {
	switch {
	case c.MaxTrials < 0 || c.MaxTrials > MaxTrials:
		return invalid("max_trials", c.MaxTrials, "must be 0 (no limit) to 10000000", "")
	case c.Timeout < 0:
		return invalid("timeout", c.Timeout, "must not be negative", "use 0 for no limit")
	case !(c.MaxCost >= 0) || math.IsInf(c.MaxCost, 1):
		return invalid("max_cost", c.MaxCost, "must be finite and not negative", "use 0 for no limit")
	}
	return nil
}

func checkObjectives(objectives []Objective) error {
	if len(objectives) < 1 || len(objectives) > MaxMetrics {
		return invalid("objectives", len(objectives), "must be 1 to 64 objectives", "")
	}
	for i, o := range objectives {
		field := fmt.Sprintf("objectives[%d]", i)
		if err := checkName(field+".name", o.Name); err != nil {
			return err
		}
		if o.Direction != Minimize && o.Direction != Maximize {
			return invalid(field+".direction", o.Direction, "must be minimize or maximize", "")
		}
		if slices.ContainsFunc(objectives[:i], func(p Objective) bool { return p.Name == o.Name }) {
			return invalid(field+".name", o.Name, "is the name of an earlier objective", "give each its own name")
		}
	}
	return nil
}

func (p Component) check(field string) error {
	if p.Name != "" {
		if err := checkName(field+".name", p.Name); err != nil {
			return err
		}
	}
	if p.Options == "" {
		return nil
	}
	if err := checkText(field+".options", p.Options, MaxOptionsBytes); err != nil {
		return err
	}
	if !json.Valid([]byte(p.Options)) || p.Options[0] != '{' {
		return invalid(field+".options", p.Options, "must be a JSON object", "")
	}
	return nil
}

// Component names a proposer or pruner and holds its options as a JSON object or
// nothing. This package does not interpret the options.
type Component struct {
	Name    string `json:"name"`
	Options string `json:"options"`
}

// Objective is a quantity to optimise.
type Objective struct {
	Name      string    `json:"name"`
	Direction Direction `json:"direction"`
}

// Direction is the direction in which an objective improves.
type Direction uint8

// The directions. The zero Direction is invalid.
const (
	Minimize Direction = iota + 1
	Maximize
)

var directions = []string{Minimize: "minimize", Maximize: "maximize"}

// String returns minimize or maximize.
func (d Direction) String() string { return named("Direction", uint8(d), directions) }

// MarshalText returns minimize or maximize.
func (d Direction) MarshalText() ([]byte, error) {
	if d != Minimize && d != Maximize {
		return nil, fmt.Errorf("there is no %s", d)
	}
	return []byte(d.String()), nil
}

// UnmarshalText reads minimize or maximize.
func (d *Direction) UnmarshalText(text []byte) error {
	*d = Direction(max(0, slices.Index(directions, string(text))))
	if *d == 0 {
		return fmt.Errorf("direction %.40q: must be minimize or maximize", text)
	}
	return nil
}

// Compare orders two values of an objective, better first. It is negative if a is better than b.
// NaN equals itself and is worse than any other value, including the infinity on the bad side.
func (d Direction) Compare(a, b float64) int {
	switch {
	case math.IsNaN(a) && math.IsNaN(b):
		return 0
	case math.IsNaN(a):
		return 1
	case math.IsNaN(b):
		return -1
	case a == b:
		return 0
	case (a < b) == (d == Minimize):
		return -1
	default:
		return 1
	}
}

// goodInfinity tells whether x is the infinity on the good side, which cannot be measured.
func (d Direction) goodInfinity(x float64) bool {
	return d == Minimize && math.IsInf(x, -1) || d == Maximize && math.IsInf(x, 1)
}

// FinishReason tells why a study finished.
type FinishReason uint8

// The reasons. The zero FinishReason is invalid.
const (
	FinishedTrials    FinishReason = iota + 1 // MaxTrials trials are over
	FinishedTime                              // Timeout reached
	FinishedCost                              // MaxCost reached
	FinishedGap                               // the optimality gap of the proposer fell below its threshold
	FinishedExhausted                         // the proposer has tried all configurations
	FinishedUser                              // ended by a user
	FinishedTarget                            // Target reached
	FinishedPatience                          // Patience trials without a better value
)

// String returns the reason in lower case.
func (r FinishReason) String() string {
	return named("FinishReason", uint8(r), []string{FinishedTrials: "max trials", FinishedTime: "time", FinishedCost: "cost", FinishedGap: "gap", FinishedExhausted: "exhausted", FinishedUser: "user", FinishedTarget: "target", FinishedPatience: "patience"})
}

// Attributes are a user's own key-value notes.
type Attributes map[string]string

// StopAttribute is the attribute that asks a running trial to stop. Its value is the reason.
// StopReason is a reason if there is no better one.
const (
	StopAttribute = "bkb.stop"
	StopReason    = "stopped by hand"
)

// ReplacedAttribute is the attribute of a cancelled trial whose outcome was added as that of
// another one, so that it still counts towards MaxTrials.
const ReplacedAttribute = "bkb:replaced"

// named returns the i-th name of a type's constants, or the type with the number.
func named(typ string, i uint8, names []string) string {
	if int(i) < len(names) && names[i] != "" {
		return names[i]
	}
	return fmt.Sprintf("%s(%d)", typ, i)
}
