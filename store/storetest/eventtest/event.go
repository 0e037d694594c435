// Package eventtest is a source of events for tests. It does not import package store, so that the
// tests of store need not compile the suite again.
package eventtest

import (
	"math"
	"reflect"
	"strings"
	"sync"
	"time"

	"github.com/bkbtuner/bkb/tuner/space"
	"github.com/bkbtuner/bkb/tuner/study"
	"pgregory.net/rapid"
)

// AnyEvent generates events of every kind with every value that a record can hold, also
// those that a study would refuse. They include NaN, infinities, −0, the largest
// numbers, empty and long texts, missing and extreme times, and nil and empty lists.
func AnyEvent() *rapid.Generator[study.Event] { return anyEvent() }

var anyEvent = sync.OnceValue(func() *rapid.Generator[study.Event] {
	of := rapid.MakeConfig{
		Types: make(map[reflect.Type]*rapid.Generator[any]),
		Kinds: map[reflect.Kind]*rapid.Generator[any]{
			reflect.String:  anyText.AsAny(),
			reflect.Float64: rapid.OneOf(rapid.Float64(), rapid.SampledFrom(floats)).AsAny(),
			reflect.Int:     rapid.OneOf(rapid.Int(), rapid.IntRange(-1, 300)).AsAny(),
			reflect.Int64:   anyInt.AsAny(),
		},
		Fields: map[reflect.Type]map[string]*rapid.Generator[any]{ // numbers of a spec are stored as JSON
			reflect.TypeFor[study.Spec]():    {"MaxCost": rapid.Float64().AsAny(), "Target": rapid.Ptr(rapid.Float64(), true).AsAny()},
			reflect.TypeFor[study.Request](): {"Answer": rapid.IntRange(0, study.MaxCount).AsAny()},
		},
	}
	override(of, anyTime)
	override(of, rapid.SampledFrom(spaces()))
	override(of, rapid.SliceOfN(rapid.Byte(), 0, 40))
	override(of, enumeration(1, study.Maximize))
	override(of, enumeration(1, study.FinishedPatience))
	override(of, enumeration(1, study.Pruned))
	override(of, enumeration(0, study.FailedNaN))
	override(of, rapid.OneOf(
		rapid.Map(rapid.MakeCustom[float64](of), space.Float), rapid.Map(anyInt, space.Int),
		rapid.Map(anyText, space.String), rapid.Map(rapid.Bool(), space.Bool),
	))
	few(of, rapid.MakeCustom[float64](of))
	few(of, rapid.MakeCustom[study.Objective](of))
	few(of, rapid.MakeCustom[study.NamedValue](of))
	few(of, rapid.MakeCustom[study.Metric](of))
	few(of, rapid.MakeCustom[study.Report](of))
	override(of, rapid.Map(rapid.MapOfN(anyText, anyText, 0, 3), func(m map[string]string) study.Attributes { return m }))
	override(of, rapid.Map(rapid.SliceOfN(rapid.MakeCustom[space.Assignment](of), 0, 5), func(list []space.Assignment) space.Config { return space.NewConfig(list...) }))
	override(of, rapid.OneOf(
		kind[study.Created](of), kind[study.Paused](of), kind[study.Resumed](of), kind[study.Finished](of), kind[study.Raised](of),
		kind[study.Enqueued](of), kind[study.Started](of), kind[study.Extended](of), kind[study.Reported](of), kind[study.Expired](of),
		kind[study.Told](of), kind[study.ToldLate](of), kind[study.Added](of), kind[study.Attributed](of), kind[study.Anchored](of),
	))
	return rapid.MakeCustom[study.Event](of)
})

// override makes all values of a type with g.
func override[T any](of rapid.MakeConfig, g *rapid.Generator[T]) {
	of.Types[reflect.TypeFor[T]()] = g.AsAny()
}

func few[T any](of rapid.MakeConfig, g *rapid.Generator[T]) { override(of, rapid.SliceOfN(g, 0, 3)) }

func enumeration[E ~uint8](first, last E) *rapid.Generator[E] {
	return rapid.Map(rapid.Uint8Range(uint8(first), uint8(last)), func(n uint8) E { return E(n) })
}

func kind[B study.Body](of rapid.MakeConfig) *rapid.Generator[study.Body] {
	return rapid.Map(rapid.MakeCustom[B](of), func(b B) study.Body { return b })
}

var floats = []float64{
	0, math.Copysign(0, -1), 1, math.Inf(1), math.Inf(-1), math.MaxFloat64, math.SmallestNonzeroFloat64,
	math.NaN(), math.Float64frombits(0x7ff0000000000001), math.Float64frombits(0xffffffffffffffff),
}

var (
	anyInt  = rapid.OneOf(rapid.Int64(), rapid.SampledFrom([]int64{0, 1, -1, 1<<53 + 1, math.MaxInt64, math.MinInt64}))
	anyText = rapid.OneOf(
		rapid.SampledFrom([]string{"", "loss", "ε", "\x00", "a\nb", "日本語", "🜚", "\u202e", "\ufffd", strings.Repeat("x", 127), strings.Repeat("ß", 300)}),
		rapid.Map(rapid.StringN(0, 12, -1), func(s string) string { return strings.ToValidUTF8(s, "?") }),
	)
	anyTime = rapid.OneOf(
		rapid.SampledFrom([]time.Time{{}, time.Unix(0, 0), time.Unix(0, math.MaxInt64), time.Unix(0, math.MinInt64+1), Instant}),
		rapid.Map(rapid.Int64Min(math.MinInt64+1), func(n int64) time.Time { return time.Unix(0, n).In(time.FixedZone("", 3600)) }),
	)
)
