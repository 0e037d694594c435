package bo

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"

	"github.com/bkbtuner/bkb/tuner/space"
)

// table is a problem that looks up values. Every configuration has been measured, or is
// known to fail. Evaluate draws one of a configuration's measurements, and True is their
// mean.
type table struct {
	name         string
	space        *space.Space
	columns      []*column
	conditional  bool      // some are not always active
	row          []int32   // of a code (see code), -1 where there is none
	begin        []int32   // row r has measurements begin[r] … begin[r+1]
	measured     []float64 // of all rows
	mean         []float64 // of each row
	best, median float64
}

// column is a parameter. It has its levels and the texts that name them in a file.
type column struct {
	parameter space.Parameter
	levels    map[space.Value]int
	texts     map[string]int
	kind      space.Kind // of all levels
	stride    int
	// read turns a text of the file into a value. If nil, it reads numbers as such.
	read func(text string) (space.Value, error)
}

const (
	// maxCodes is the maximum number of combinations of levels in a table, measured or not,
	// at 4 bytes each.
	maxCodes = 1 << 24
	// maxLevels is the maximum number of levels of a parameter.
	maxLevels = 1 << 10
)

// newTable returns an empty table. The first of its columns varies slowest.
func newTable(name string, columns ...*column) (*table, error) {
	t := &table{name: name, columns: columns, begin: []int32{0}}
	var parameters []space.Parameter
	for _, c := range columns {
		parameters = append(parameters, c.parameter)
		t.conditional = t.conditional || len(c.parameter.When) > 0
	}
	var err error
	if t.space, err = space.New(parameters...); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	codes := 1
	for i, c := range slices.Backward(columns) {
		if err := c.enumerate(t.space.Parameters()[i]); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		c.stride = codes
		if codes *= len(c.levels); codes > maxCodes {
			return nil, fmt.Errorf("%s: more than %d combinations", name, maxCodes)
		}
	}
	t.row = slices.Repeat([]int32{-1}, codes)
	return t, nil
}

// enumerate finds the levels of a parameter as the space interprets it.
func (c *column) enumerate(p space.Parameter) error {
	p.When = nil
	alone, err := space.New(p)
	if err != nil {
		return err
	}
	n := alone.Cardinality()
	if n > maxLevels {
		return fmt.Errorf("parameter %q has %g values, and one of a table %d at most", p.Name, n, maxLevels)
	}
	c.parameter, c.levels, c.texts = p, map[space.Value]int{}, map[string]int{}
	for k := range int(n) {
		at, err := alone.Decode([]float64{(float64(k) + 0.5) / n})
		if err != nil {
			return err
		}
		v, _ := at.Get(p.Name)
		c.levels[v], c.kind = k, v.Kind()
	}
	return nil
}

// level returns the level of a text of the file. The text "" is level 0, for an inactive
// parameter.
func (c *column) level(text string) (int, error) {
	if k, ok := c.texts[text]; ok || text == "" {
		return k, nil
	}
	read := c.read
	if read == nil {
		read = c.asWritten
	}
	v, err := read(text)
	if err != nil {
		return 0, fmt.Errorf("parameter %q: %w", c.parameter.Name, err)
	}
	k, ok := c.levels[v]
	if !ok {
		return 0, fmt.Errorf("parameter %q: %s is none of its values", c.parameter.Name, text)
	}
	c.texts[text] = k
	return k, nil
}

// asWritten reads numbers where the parameter has numbers, and texts elsewhere.
func (c *column) asWritten(text string) (space.Value, error) {
	switch c.kind {
	case space.KindFloat:
		x, err := strconv.ParseFloat(text, 64)
		return space.Float(x), err
	case space.KindInt:
		x, err := strconv.ParseFloat(text, 64)
		if err == nil && x != math.Trunc(x) {
			err = fmt.Errorf("%s is not whole", text)
		}
		return space.Int(int64(x)), err
	case space.KindBool:
		x, err := strconv.ParseBool(text)
		return space.Bool(x), err
	}
	return space.String(text), nil
}

// add enters a configuration, its parameters in the order of the columns.
func (t *table) add(texts []string, measured ...float64) error {
	code := 0
	for i, c := range t.columns {
		k, err := c.level(texts[i])
		if err != nil {
			return fmt.Errorf("%s: %w", t.name, err)
		}
		code += k * c.stride
	}
	if t.row[code] >= 0 {
		return fmt.Errorf("%s: configuration %v is listed twice", t.name, texts)
	}
	t.enter(code, measured)
	return nil
}

func (t *table) enter(code int, measured []float64) {
	t.row[code] = int32(len(t.mean))
	t.measured = append(t.measured, measured...)
	t.begin = append(t.begin, int32(len(t.measured)))
	t.mean = append(t.mean, mean(measured))
}

func mean(x []float64) float64 {
	sum := 0.0
	for _, v := range x {
		sum += v
	}
	return sum / float64(len(x))
}

// finish computes best and median after all rows are added.
func (t *table) finish() (Problem, error) {
	type share struct{ value, weight float64 }
	var shares []share
	half := 0.0
	for code, r := range t.row {
		if r < 0 {
			continue
		}
		weight, err := t.weight(code)
		if err != nil {
			return nil, err
		}
		shares = append(shares, share{t.mean[r], weight})
		half += weight / 2
	}
	if len(shares) == 0 {
		return nil, fmt.Errorf("%s: no configuration works", t.name)
	}
	slices.SortFunc(shares, func(a, b share) int { return cmp.Compare(a.value, b.value) })
	t.best = shares[0].value
	for _, s := range shares {
		t.median = s.value
		if half -= s.weight; half < 0 {
			break
		}
	}
	if !(t.median > t.best) || math.IsInf(t.best, 0) {
		return nil, fmt.Errorf("%s: median %v, best %v: there is nothing to find", t.name, t.median, t.best)
	}
	return t, nil
}

// weight returns the probability of a configuration that is uniform in the unit
// cube, up to a factor.
func (t *table) weight(code int) (float64, error) {
	if !t.conditional {
		return 1, nil
	}
	c, err := t.config(code)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", t.name, err)
	}
	weight := 1.0
	for _, col := range t.columns {
		if _, active := c.Get(col.parameter.Name); active {
			weight /= float64(len(col.levels))
		}
	}
	return weight, nil
}

// config returns the configuration with a code.
func (t *table) config(code int) (space.Config, error) {
	u := make([]float64, t.space.Dim())
	for _, c := range t.columns {
		if i, ok := t.space.Coordinate(c.parameter.Name); ok {
			n := len(c.levels)
			u[i] = (float64(code/c.stride%n) + 0.5) / float64(n)
		}
	}
	return t.space.Decode(u)
}

// code returns the number of a configuration among all combinations of levels. An inactive
// parameter counts as level 0.
func (t *table) code(c space.Config) int {
	code := 0
	for _, col := range t.columns {
		if v, active := c.Get(col.parameter.Name); active {
			code += col.levels[v] * col.stride
		}
	}
	return code
}

// Name implements [Problem].
func (t *table) Name() string { return t.name }

// Suite implements [Problem].
func (t *table) Suite() string { return suiteOf(t.name) }

// Space implements [Problem].
func (t *table) Space() *space.Space { return t.space }

// Best implements [Problem].
func (t *table) Best() float64 { return t.best }

// Median implements [Problem].
func (t *table) Median() float64 { return t.median }

// Evaluate implements [Problem].
func (t *table) Evaluate(c space.Config, rng *rand.Rand) (value float64, ok bool) {
	r := t.row[t.code(c)]
	if r < 0 {
		return 0, false
	}
	all := t.measured[t.begin[r]:t.begin[r+1]]
	if len(all) == 1 {
		return all[0], true
	}
	return all[rng.IntN(len(all))], true
}

// True implements [Problem].
func (t *table) True(c space.Config) float64 {
	if r := t.row[t.code(c)]; r >= 0 {
		return t.mean[r]
	}
	return math.Inf(1)
}

func floats(numbers ...float64) []space.Value {
	var out []space.Value
	for _, x := range numbers {
		out = append(out, space.Float(x))
	}
	return out
}

func ints(numbers ...int64) []space.Value {
	var out []space.Value
	for _, n := range numbers {
		out = append(out, space.Int(n))
	}
	return out
}

func texts(words ...string) []space.Value {
	var out []space.Value
	for _, w := range words {
		out = append(out, space.String(w))
	}
	return out
}

func ordinal(name string, values ...space.Value) *column {
	return &column{parameter: space.NewOrdinal(name, values...)}
}

func categorical(name string, values ...space.Value) *column {
	return &column{parameter: space.NewCategorical(name, values...)}
}
