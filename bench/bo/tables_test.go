package bo

import (
	"compress/gzip"
	"encoding/json"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/bkbtuner/bkb/internal/racetest"
	"github.com/bkbtuner/bkb/internal/stream"
	"github.com/bkbtuner/bkb/tuner/space"
)

// raw reads a file of a table independently of the tables, as fields by line.
func raw(t *testing.T, file string) []string {
	t.Helper()
	f, err := os.Open(filepath.Join(dataFolder(), file))
	if err != nil {
		t.Skipf("no real data: %v", err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSpace(string(text)), "\n")
}

// problem opens a problem by its name.
func problem(t *testing.T, name string) Problem {
	t.Helper()
	for _, suite := range Suites() {
		for _, l := range suite.Problems {
			if l.Name == name {
				return open(t, l)
			}
		}
	}
	t.Fatalf("there is no problem %s", name)
	return nil
}

// configOf makes a configuration from texts. An empty text means inactive.
func configOf(t *testing.T, s *space.Space, texts []string) space.Config {
	t.Helper()
	var entries []space.Assignment
	for i, p := range s.Parameters() {
		if texts[i] == "" {
			continue
		}
		v := space.String(texts[i])
		number, err := strconv.ParseFloat(texts[i], 64)
		switch {
		case p.Type == space.TypeInt:
			v = space.Int(int64(number))
		case p.Type == space.TypeFloat:
			v = space.Float(number)
		case err == nil && p.Values[0].Kind() == space.KindBool:
			v = space.Bool(number != 0)
		case err == nil && p.Values[0].Kind() == space.KindInt:
			v = space.Int(int64(number))
		case err == nil && p.Values[0].Kind() == space.KindFloat:
			v = space.Float(number)
		}
		entries = append(entries, space.Assignment{Name: p.Name, Value: v})
	}
	c := space.NewConfig(entries...)
	if err := s.Validate(c); err != nil {
		t.Fatalf("%v: %v", texts, err)
	}
	return c
}

// csvCases are tables in CSV files. They say how to read a line as parameters and values to
// minimize.
var csvCases = []struct {
	name, file  string
	header      bool
	parameters  int
	line        func(fields []string) (config []string, values []float64)
	rows, every int // lines of the file, configurations of the space
}{
	{"table/fcnet-naval_propulsion", "hpo_simplehpobench/hpolib_naval_propulsion.csv.gz", true, 9, after(9, math.Log), 62208, 62208},
	{"table/fcnet-parkinsons_telemonitoring", "hpo_simplehpobench/hpolib_parkinsons_telemonitoring.csv.gz", true, 9, after(9, math.Log), 62208, 62208},
	{"table/hpobench-phoneme", "hpo_simplehpobench/hpobench_phoneme.csv.gz", true, 5, after(5, func(v float64) float64 { return 1 - v }), 30000, 30000},
	{"table/hpobench-car", "hpo_simplehpobench/hpobench_car.csv.gz", true, 5, after(5, func(v float64) float64 { return 1 - v }), 30000, 30000},
	{"table/nasbench201-cifar10", "hpo_simplehpobench/nasbench201_cifar10.csv.gz", true, 6, after(6, func(v float64) float64 { return 100 - v }), 15625, 15625},
	{"table/chem-suzuki", "chem_olympus/suzuki_edbo.data.csv.gz", false, 5, after(5, func(v float64) float64 { return -v }), 3696, 3696},
	{"table/chem-perovskites", "chem_olympus/perovskites.data.csv.gz", false, 3, after(3, func(v float64) float64 { return v }), 192, 192},
	{"table/chem-buchwald-e", "chem_olympus/buchwald_e.data.csv.gz", false, 4, after(4, func(v float64) float64 { return -v }), 792, 792},
	{"table/chem-dye-lasers", "chem_olympus/dye_lasers.data.csv.gz", false, 3, negatedFirst(3), 3458, 3458},
	{"table/chem-fullerenes", "chem_olympus/fullerenes.data.csv.gz", false, 3, after(3, func(v float64) float64 { return -v }), 246, 216},
	{"table/structured-svm", "hpo_snoek2012/svm.csv.gz", false, 3, func(f []string) ([]string, []float64) {
		v, _ := strconv.ParseFloat(f[3], 64)
		return f[:3], []float64{v}
	}, 1400, 1400},
	{"table/svm-letter", "hpo_svm_tst/letter.txt.gz", false, 4, svmLine, 288, 288},
}

// after reads n parameters and then measurements, whose value is f of each.
func after(n int, f func(float64) float64) func([]string) ([]string, []float64) {
	return func(fields []string) ([]string, []float64) {
		var values []float64
		for _, text := range fields[n:] {
			if v, err := strconv.ParseFloat(text, 64); err == nil {
				values = append(values, f(v))
			}
		}
		return fields[:n], values
	}
}

// negatedFirst reads n parameters and one measurement to be maximized.
func negatedFirst(n int) func([]string) ([]string, []float64) {
	return func(fields []string) ([]string, []float64) {
		v, _ := strconv.ParseFloat(fields[n], 64)
		return fields[:n], []float64{-v}
	}
}

// svmLine reads accuracy, three flags of kernels and three exponents.
func svmLine(fields []string) ([]string, []float64) {
	x := make([]float64, 7)
	for i := range x {
		x[i], _ = strconv.ParseFloat(fields[i], 64)
	}
	text := func(base, exponent float64) string {
		return strconv.FormatFloat(math.Pow(base, exponent), 'g', 5, 64)
	}
	config := []string{"", text(2, 6*x[4]), "", ""}
	switch {
	case x[1] == 1:
		config[0], config[2] = "rbf", text(10, 4*x[5])
	case x[2] == 1:
		config[0], config[3] = "poly", text(10, x[6])
	default:
		config[0] = "linear"
	}
	return config, []float64{1 - x[0]}
}

// A table has the file's values, all of its configurations, its least mean, and its median.
// Measurements are drawn in equal shares. Large tables are compared if BKB_SUITES is set.
func TestTablesAreTheFiles(t *testing.T) {
	racetest.Alone(t)
	for _, k := range csvCases {
		if k.rows > 20_000 && os.Getenv("BKB_SUITES") == "" {
			continue
		}
		t.Run(k.name, func(t *testing.T) {
			p := problem(t, k.name)
			comma := ","
			if strings.HasSuffix(k.file, ".txt.gz") {
				comma = " "
			}
			lines := raw(t, k.file)
			if k.header {
				lines = lines[1:]
			}
			if len(lines) != k.rows || p.Space().Cardinality() != float64(k.every) {
				t.Fatalf("%d lines, want %d; %v configurations, want %d", len(lines), k.rows, p.Space().Cardinality(), k.every)
			}
			measured := map[string][]float64{} // by configuration
			configs := map[string][]string{}
			for _, line := range lines {
				config, values := k.line(strings.Split(strings.TrimSpace(line), comma))
				key := strings.Join(config, "|")
				measured[key], configs[key] = append(measured[key], values...), config
			}
			agrees(t, p, measured, configs)
			if len(measured) != k.every {
				t.Errorf("%d configurations in the file, %d in the space", len(measured), k.every)
			}
		})
	}
}

// agrees compares a problem with measurements by configuration. The lists are in the order
// of the file.
func agrees(t *testing.T, p Problem, measured map[string][]float64, configs map[string][]string) {
	t.Helper()
	const seed = 7
	rng, best := rand.New(rand.NewPCG(seed, 0)), math.Inf(1)
	keys := make([]string, 0, len(measured))
	means := make([]float64, 0, len(measured))
	for key, values := range measured {
		sum := 0.0
		for _, v := range values {
			sum += v
		}
		best = min(best, sum/float64(len(values)))
		means = append(means, sum/float64(len(values)))
		keys = append(keys, key)
	}
	slices.Sort(keys)
	if math.Abs(p.Best()-best) > 1e-12*(1+math.Abs(best)) {
		t.Errorf("best %v, the file's least mean is %v", p.Best(), best)
	}
	slices.Sort(means)
	conditional := slices.ContainsFunc(p.Space().Parameters(), func(q space.Parameter) bool { return len(q.When) > 0 })
	if n := len(means); !conditional && (p.Median() < means[(n-1)/2]-1e-12 || p.Median() > means[n/2]+1e-12) {
		t.Errorf("median %v, the file's is %v", p.Median(), means[n/2])
	}
	for range 300 {
		key := keys[rng.IntN(len(keys))]
		c, values, sum := configOf(t, p.Space(), configs[key]), measured[key], 0.0
		for _, v := range values {
			sum += v
		}
		if mean := sum / float64(len(values)); math.Abs(p.True(c)-mean) > 1e-12*(1+math.Abs(mean)) {
			t.Fatalf("seed %d: True(%v) = %v, the file has %v", seed, c, p.True(c), values)
		}
		y, ok := p.Evaluate(c, rng)
		if !ok || !slices.ContainsFunc(values, func(v float64) bool { return math.Abs(v-y) <= 1e-12*(1+math.Abs(v)) }) {
			t.Fatalf("seed %d: Evaluate(%v) = %v, %v, the file has %v", seed, c, y, ok, values)
		}
	}
	sampleMean(t, p, configOf(t, p.Space(), configs[keys[0]]), measured[keys[0]])
}

// sampleMean compares the mean of many measurements of a configuration with that of the
// list from which they are drawn.
func sampleMean(t *testing.T, p Problem, c space.Config, values []float64) {
	t.Helper()
	rng, sum, square, n := stream.New(3), 0.0, 0.0, 2000.0
	for range int(n) {
		y, _ := p.Evaluate(c, rng)
		sum += y
		square += (y - p.True(c)) * (y - p.True(c))
	}
	if off, spread := math.Abs(sum/n-p.True(c)), math.Sqrt(square/n/n); off > 5*spread+1e-12*math.Abs(sum/n) {
		t.Errorf("%d measurements: their mean is off by %v, want about %v", int(n), off, spread)
	}
	if len(values) > 1 && square == 0 {
		t.Errorf("%d measurements in the file, and no noise", len(values))
	}
}

// A table of kernels has the file's timings, and fails for other configurations.
func TestKernelTablesAreTheFiles(t *testing.T) {
	racetest.Alone(t)
	p := problem(t, "table/gpu-convolution-a100")
	var file struct {
		Keys  []string                  `json:"tune_params_keys"`
		Cache map[string]map[string]any `json:"cache"`
	}
	text := strings.Join(raw(t, "gpu_kernel_tuning/convolution_milo__A100.json.gz"), "\n")
	if err := json.Unmarshal([]byte(text), &file); err != nil {
		t.Fatal(err)
	}
	measured, configs, failed := map[string][]float64{}, map[string][]string{}, 0
	for key, entry := range file.Cache {
		var config []string
		for _, q := range p.Space().Parameters() {
			config = append(config, strconv.FormatFloat(entry[q.Name].(float64), 'g', -1, 64))
		}
		if _, ok := entry["time"].(float64); !ok {
			failed++
			c := configOf(t, p.Space(), config)
			if _, ok := p.Evaluate(c, nil); ok || !math.IsInf(p.True(c), 1) {
				t.Errorf("%v failed in the file, and is %v", c, p.True(c))
			}
			continue
		}
		for _, v := range entry["times"].([]any) {
			measured[key] = append(measured[key], v.(float64))
		}
		configs[key] = config
	}
	if failed != 161 || len(measured) != 4362-161 {
		t.Fatalf("%d failed, %d did not", failed, len(measured))
	}
	agrees(t, p, measured, configs)
	rng, missing, n := stream.New(5), 0, 20000
	for range n {
		if math.IsInf(p.True(random(t, p.Space(), rng.Float64)), 1) {
			missing++
		}
	}
	if want := 1 - float64(len(measured))/p.Space().Cardinality(); math.Abs(float64(missing)/float64(n)-want) > 0.02 {
		t.Errorf("%d of %d configurations fail, want the share %v", missing, n, want)
	}
}

// The crossed barrel has the file's values where it was measured, and those of a neighbour
// elsewhere.
func TestCrossedBarrelIsTheFile(t *testing.T) {
	p := problem(t, "table/materials-crossed-barrel")
	measured, configs := map[string][]float64{}, map[string][]string{}
	for _, line := range raw(t, "materials_pvlab/Crossed_barrel_dataset.csv.gz")[1:] {
		f := strings.Split(strings.TrimSpace(line), ",")
		config := []string{f[0], f[1], f[3], f[2]}
		v, err := strconv.ParseFloat(f[4], 64)
		if err != nil {
			t.Fatal(err)
		}
		key := strings.Join(config, "|")
		measured[key], configs[key] = append(measured[key], -v), config
	}
	if len(measured) != 600 {
		t.Fatalf("%d configurations", len(measured))
	}
	best := math.Inf(1)
	for key, values := range measured {
		mean := (values[0] + values[1] + values[2]) / 3
		best = min(best, mean)
		c := configOf(t, p.Space(), configs[key])
		if math.Abs(p.True(c)-mean) > 1e-12*(1+math.Abs(mean)) {
			t.Fatalf("True(%v) = %v, the file has %v", c, p.True(c), values)
		}
		r, err := strconv.ParseFloat(configs[key][3], 64)
		if err != nil {
			t.Fatal(err)
		}
		next := slices.Clone(configs[key])
		if next[3] = strconv.FormatFloat(r+0.1, 'f', 1, 64); r < 2.45 {
			if _, there := measured[strings.Join(next, "|")]; there {
				t.Fatalf("%v was measured too", next)
			}
			if c := configOf(t, p.Space(), next); p.True(c) != p.True(configOf(t, p.Space(), configs[key])) {
				t.Fatalf("True(%v) = %v, its neighbour's is %v", c, p.True(c), mean)
			}
		}
	}
	if math.Abs(best-p.Best()) > 1e-12*(1+math.Abs(best)) {
		t.Errorf("best %v, want %v", p.Best(), best)
	}
	key := configs["6|0|0.7|1.5"]
	sampleMean(t, p, configOf(t, p.Space(), key), measured["6|0|0.7|1.5"])
}

// Faults of a table are reported with the parameter, the text or the configuration.
func TestFaultyTables(t *testing.T) {
	fresh := func() *table {
		a, err := newTable("table/x", ordinal("a", ints(1, 2)...), flag("b"))
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	a := fresh()
	for _, bad := range [][]string{{"3", "true"}, {"1.5", "true"}, {"one", "true"}, {"1", "perhaps"}} {
		if err := a.add(bad, 1); err == nil || !strings.Contains(err.Error(), "table/x") {
			t.Errorf("%v: %v", bad, err)
		}
	}
	if _, err := a.finish(); err == nil {
		t.Error("an empty table is a problem")
	}
	if err := a.add([]string{"1", "1"}, 4); err != nil {
		t.Fatal(err)
	}
	if err := a.add([]string{"1", "true"}, 4); err == nil {
		t.Error("a configuration was entered twice")
	}
	if _, err := a.finish(); err == nil {
		t.Error("a table with one value is a problem")
	}
	if _, err := newTable("table/x", &column{parameter: space.NewFloat("a", 0, 1)}); err == nil {
		t.Error("a continuous parameter is listed")
	}
	if _, err := newTable("table/x", stepped("a", 1, 1<<9, 1), stepped("b", 1, 1<<9, 1), stepped("c", 1, 1<<9, 1)); err == nil {
		t.Error("2²⁷ combinations are a table")
	}
}

// BenchmarkOpen reads tables.
func BenchmarkOpen(b *testing.B) {
	for _, l := range tables.Problems {
		b.Run(strings.TrimPrefix(l.Name, "table/"), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				open(b, l)
			}
		})
	}
}
