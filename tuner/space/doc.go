// Package space describes search spaces, and maps them to the unit cube and back.
//
// A [Space] is an immutable list of [Parameter]s, which are floats, ints, ordinals,
// categoricals and constants. Each is active always or only while its parents have given
// values. A [Config] assigns values to the active ones. [Parse] reads a space from YAML or
// JSON (its own form, Optuna's, Katib's). [Lint] gives advice about a space.
// [Space.Validate] checks configurations and [Space.Complete] also repairs them.
// [Space.Edges] reports at which ends of ranges a configuration lies.
//
// # Encoding
//
// Every parameter that is not constant has one coordinate in [0, 1], in order of
// declaration. Uniform coordinates give uniform values (on the parameter's scale), which
// space-filling designs need. Near coordinates give near values, which models need.
//
//   - Float, linear: u = (x − low)/(high − low).
//   - Float, log: u = log(x/low)/log(high/low), dense near low.
//   - Float, reverse-log: u = 1 − log((high + low − x)/low)/log(high/low), dense
//     near high, as in Vizier, for parameters such as momentum.
//   - Float with step: the points low + k·step ≤ high, computed in decimal (three
//     times 0.1 is 0.3). They have equal cells. The middle of the cell is u, and
//     every u in the cell decodes to the point. If the step does not divide the
//     range, high itself is not a point, and the linter says so.
//   - Int, linear: as a float with step, Step 1 unless given.
//   - Int, log: k has the cell [k−½, k+½] measured in logarithm, from low−½ to
//     high+½, so that the ends get their fair share. Reverse-log mirrors it. A
//     range with high ≤ 1.001·low is encoded as linear, which is nearly the same.
//   - Ordinal: equal cells in the order given, independent of the values.
//   - Categorical: equal cells in the order given. The order has no meaning, and
//     [Axis].Ordered says so to models.
//   - A range of one value: u = 0.5.
//   - Inactive parameter: u = [Neutral], ignored when decoding.
//   - Constant: no coordinate. Decode puts its value into the configuration.
//
// # Exactness
//
// Logarithm and exponential round, and [0, 1] has fewer float64s than many a range. So no
// encoding returns every float64 it is given. Continuous values that Decode returns
// therefore lie on a lattice of decimals. It is coarse enough to survive all rounding and
// far finer than any model resolves:
//
//   - linear: multiples of the least power of ten ≥ max(1e-12·(high−low),
//     4 ulp of the larger bound);
//   - log: numbers of 12 significant digits; of 13 to 15 where high < 2·low
//     (< 1.1·low, < 1.01·low), of 11 where high/low > e²⁵⁶;
//   - reverse-log: multiples of the least power of ten ≥ max(1e-12·min(low,
//     high−low), 1.8e-15·log(high/low)·high, 8 ulp of high), or ≥ 4e-12·high
//     where high/low > e²⁵⁶;
//   - and low and high themselves, which only u = 0 and u = 1 decode to.
//
// So Decode(Encode(c)) = c, bit for bit, for every c that Decode can return. Encode∘Decode is
// idempotent. Any other legal float encodes too, to a u whose decoding is the nearest lattice
// value ([Space.Round]). A study keeps the exact value it was told, never a decoded one.
//
// The proof is as follows. With ε = 2⁻⁵³, forward and inverse on a linear scale together move x
// by at most 3ε·(high−low) and one ulp, less than half the spacing. On a log scale they move log
// x by at most 4ε·log(high/low) ≤ 1.2e-13 relative to x, plus one ulp, and half of a unit of the
// 12th digit is at least 5e-13. Beyond e²⁵⁶ the logarithms themselves are rounded to 1.1e-13
// each, and half of a unit of the 11th digit is 5e-12.
//
// Ints are exact up to 1e15 values on a linear and up to 1e12 on a log scale. Beyond that,
// neighbours would share a coordinate. There, values lie on the grid of every 10th, 100th,
// … (linear) or have 12 significant digits (log), and the two ends are exact. Ordinals,
// categoricals, conditions and stepped floats are always exact.
//
// # Values
//
// Values of floats are Floats, those of ints are Ints, and those of a list have the kinds given.
// Values of one list must differ as text, so that a command line can name them. The int 1 and the
// float 1.0 do. In JSON, floats have a dot or an exponent, and ints have neither.
//
// # Conditions
//
// A parameter is active if each of its conditions is met. A condition is met if the parent
// is itself active and has one of the values listed. Parents are ints, ordinals,
// categoricals or constants. At most [MaxConditionDepth] of them depend on one another.
//
// # Files
//
// docs/spaces.md describes the form of files. The order of parameters counts. Reading is strict.
// Errors are unknown and repeated keys, keys that differ only in case, numbers that are not plain
// decimals, YAML anchors, aliases, merge keys, tags and further documents, and files beyond the
// limits (see [MaxParameters] and the constants next to it). All faults are reported at once,
// each an [Error] with the line, the parameter, the value, the rule and a remedy.
//
// # Constraints
//
// A constraint is a text that compares sums and products of parameters and numbers, and
// values, see docs/spaces.md. Comparisons of integers are exact, with numbers as the decimals
// that are written. An equation of floats holds up to 1e-9 of the size of its terms at the
// values, and inequalities of floats hold as computed in float64.
//
// Decode and Snap return configurations that keep the constraints. Where a point does not,
// they project it onto the broken comparisons by Newton steps if that moves it little. Else
// they compute parameters that equations determine, or move the point towards one of 64
// sampled configurations that keep the constraints. A float that an equation determines may
// have more digits than the lattice, and the rounded values determine it again. Of a product
// of integers that equals a number, all divisors are tried. [Space.Inside] only says whether
// constraints hold, for uniform samples. A space that has no such configuration, as far as
// 8192 samples show, is refused.
//
// # Cost
//
// Encode and Decode are O(parameters + conditions), about 0.2 µs for a continuous parameter
// and less for others. Creation is linear in the size of the description.
package space
