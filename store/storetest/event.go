package storetest

import (
	"math"
	"strings"
	"time"

	"github.com/bkbtuner/bkb/tuner/space"
	"github.com/bkbtuner/bkb/tuner/study"
	"pgregory.net/rapid"
)

// AnyEvent generates events of every kind with every value that a record can hold, also
// those that a study would refuse. They include NaN, infinities, −0, the largest
// numbers, empty and long texts, missing and extreme times, and nil and empty lists.
func AnyEvent() *rapid.Generator[study.Event] {
	return rapid.Custom(func(t *rapid.T) study.Event {
		return study.Event{
			Time:    anyTime().Draw(t, "time"),
			Request: study.Request{ID: anyText().Draw(t, "request"), Fingerprint: rapid.Uint64().Draw(t, "fingerprint"), Answer: rapid.IntRange(0, study.MaxCount).Draw(t, "answer")},
			Caller:  anyText().Draw(t, "caller"),
			Body:    anyBody().Draw(t, "body"),
		}
	})
}

func anyBody() *rapid.Generator[study.Body] {
	return rapid.OneOf(
		body(func(t *rapid.T) study.Body { return study.Created{Spec: anySpec(t)} }),
		rapid.SampledFrom([]study.Body{study.Paused{}, study.Resumed{}}),
		body(func(t *rapid.T) study.Body {
			return study.Finished{Reason: study.FinishReason(enumeration(t, 1, study.FinishedPatience)), Detail: text(t)}
		}),
		body(func(t *rapid.T) study.Body {
			return study.Raised{MaxTrials: number(t), Timeout: time.Duration(rapid.Int64().Draw(t, "timeout")), MaxCost: anyFloat().Draw(t, "cost")}
		}),
		body(func(t *rapid.T) study.Body {
			return study.Enqueued{Trial: number(t), Config: anyConfig(t), Attributes: anyAttributes(t)}
		}),
		body(func(t *rapid.T) study.Body {
			return study.Started{Trial: number(t), Epoch: number(t), Worker: text(t), Deadline: anyTime().Draw(t, "deadline"), Suggestion: anySuggestion(t)}
		}),
		body(func(t *rapid.T) study.Body {
			return study.Extended{Trial: number(t), Epoch: number(t), Deadline: anyTime().Draw(t, "deadline")}
		}),
		body(func(t *rapid.T) study.Body {
			return study.Reported{Trial: number(t), Epoch: number(t), Reports: anyReports(t)}
		}),
		body(func(t *rapid.T) study.Body {
			return study.Expired{Trial: number(t), Epoch: number(t), Requeued: rapid.Bool().Draw(t, "requeued")}
		}),
		body(func(t *rapid.T) study.Body {
			return study.Told{Trial: number(t), Epoch: number(t), Outcome: anyOutcome(t)}
		}),
		body(func(t *rapid.T) study.Body {
			return study.ToldLate{Trial: number(t), Epoch: number(t), Outcome: anyOutcome(t)}
		}),
		body(func(t *rapid.T) study.Body {
			return study.Added{Trial: number(t), Config: anyConfig(t), Reports: anyReports(t), Outcome: anyOutcome(t), Attributes: anyAttributes(t)}
		}),
		body(func(t *rapid.T) study.Body {
			return study.Attributed{Trial: number(t), Attributes: anyAttributes(t)}
		}),
		body(func(t *rapid.T) study.Body {
			return study.Anchored{
				Seen:      study.Position(rapid.Uint64().Draw(t, "seen")),
				Effective: study.Position(rapid.Uint64().Draw(t, "effective")),
				Model:     rapid.SliceOfN(rapid.Byte(), 0, 40).Draw(t, "model"),
			}
		}),
	)
}

func body(draw func(*rapid.T) study.Body) *rapid.Generator[study.Body] { return rapid.Custom(draw) }

// anySpec draws each setting by its type.
func anySpec(t *rapid.T) (s study.Spec) {
	for name, at := range s.Settings() {
		switch at := at.(type) {
		case **space.Space:
			*at = rapid.SampledFrom(spaces()).Draw(t, name)
		case *[]study.Objective:
			*at = rapid.SliceOfN(rapid.Custom(func(t *rapid.T) study.Objective {
				return study.Objective{Name: text(t), Direction: study.Direction(enumeration(t, 1, study.Maximize))}
			}), 0, 3).Draw(t, name)
		case *study.Component:
			*at = study.Component{Name: text(t), Options: text(t)}
		case *study.Attributes:
			*at = anyAttributes(t)
		case *int:
			*at = number(t)
		case *time.Duration:
			*at = time.Duration(number(t))
		case *uint64:
			*at = rapid.Uint64().Draw(t, name)
		case *float64:
			*at = anyFloat().Filter(func(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }).Draw(t, name)
		case **float64:
			*at = rapid.Ptr(rapid.Float64(), true).Draw(t, name)
		case *string:
			*at = text(t)
		case *bool:
			*at = rapid.Bool().Draw(t, name)
		default:
			t.Fatalf("setting %s: no values of type %T are drawn", name, at)
		}
	}
	return s
}

func anySuggestion(t *rapid.T) *study.Suggestion {
	if rapid.Bool().Draw(t, "from the queue") {
		return nil
	}
	return &study.Suggestion{
		Config: anyConfig(t),
		Seed:   rapid.Uint64().Draw(t, "seed"),
		Seen:   study.Position(rapid.Uint64().Draw(t, "seen")),
		Phase:  text(t),
		Mean:   anyFloats(t),
		StdDev: anyFloats(t),
		Bound:  anyFloats(t),
		Beta:   anyFloats(t),
	}
}

func anyConfig(t *rapid.T) space.Config {
	return space.NewConfig(rapid.SliceOfN(rapid.Custom(func(t *rapid.T) space.Assignment {
		return space.Assignment{Name: text(t), Value: anyValue().Draw(t, "value")}
	}), 0, 5).Draw(t, "config")...)
}

func anyValue() *rapid.Generator[space.Value] {
	return rapid.OneOf(
		rapid.Map(anyFloat(), space.Float),
		rapid.Map(anyInt(), space.Int),
		rapid.Map(anyText(), space.String),
		rapid.Map(rapid.Bool(), space.Bool),
	)
}

func anyReports(t *rapid.T) []study.Report {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) study.Report {
		return study.Report{
			Epoch: number(t),
			Step:  anyInt().Draw(t, "step"),
			Values: rapid.SliceOfN(rapid.Custom(func(t *rapid.T) study.NamedValue {
				return study.NamedValue{Name: text(t), Value: anyFloat().Draw(t, "value")}
			}), 0, 3).Draw(t, "values"),
		}
	}), 0, 3).Draw(t, "reports")
}

func anyOutcome(t *rapid.T) study.Outcome {
	return study.Outcome{
		State:   study.TrialState(enumeration(t, 1, study.Pruned)),
		Reason:  study.FailReason(enumeration(t, 0, study.FailedNaN)),
		Message: text(t),
		Metrics: rapid.SliceOfN(rapid.Custom(func(t *rapid.T) study.Metric {
			return study.Metric{
				Name: text(t), Values: anyFloats(t),
				StdErr: anyFloat().Draw(t, "standard error"), HasStdErr: rapid.Bool().Draw(t, "has standard error"),
			}
		}), 0, 3).Draw(t, "metrics"),
		Cost:       anyFloat().Draw(t, "cost"),
		Attributes: anyAttributes(t),
	}
}

func anyAttributes(t *rapid.T) study.Attributes {
	return rapid.MapOfN(anyText(), anyText(), 0, 3).Draw(t, "attributes")
}

func anyFloats(t *rapid.T) []float64 { return rapid.SliceOfN(anyFloat(), 0, 4).Draw(t, "floats") }

func anyFloat() *rapid.Generator[float64] {
	return rapid.OneOf(rapid.Float64(), rapid.SampledFrom([]float64{
		0, math.Copysign(0, -1), 1, math.Inf(1), math.Inf(-1), math.MaxFloat64, math.SmallestNonzeroFloat64,
		math.NaN(), math.Float64frombits(0x7ff0000000000001), math.Float64frombits(0xffffffffffffffff),
	}))
}

func anyInt() *rapid.Generator[int64] {
	return rapid.OneOf(rapid.Int64(), rapid.SampledFrom([]int64{0, 1, -1, 1<<53 + 1, math.MaxInt64, math.MinInt64}))
}

func number(t *rapid.T) int {
	return rapid.OneOf(rapid.Int(), rapid.IntRange(-1, 300)).Draw(t, "number")
}

func anyText() *rapid.Generator[string] {
	return rapid.OneOf(
		rapid.SampledFrom([]string{"", "loss", "ε", "\x00", "a\nb", "日本語", "🜚", "\u202e", "\ufffd", strings.Repeat("x", 127), strings.Repeat("ß", 300)}),
		rapid.Map(rapid.StringN(0, 12, -1), func(s string) string { return strings.ToValidUTF8(s, "?") }),
	)
}

func text(t *rapid.T) string { return anyText().Draw(t, "text") }

func enumeration[E ~uint8](t *rapid.T, first, last E) uint8 {
	return rapid.Uint8Range(uint8(first), uint8(last)).Draw(t, "enumeration")
}

func anyTime() *rapid.Generator[time.Time] {
	return rapid.OneOf(
		rapid.SampledFrom([]time.Time{{}, time.Unix(0, 0), time.Unix(0, math.MaxInt64), time.Unix(0, math.MinInt64+1), instant}),
		rapid.Map(rapid.Int64Min(math.MinInt64+1), func(n int64) time.Time { return time.Unix(0, n).In(time.FixedZone("", 3600)) }),
	)
}
