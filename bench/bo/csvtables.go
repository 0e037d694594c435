package bo

import (
	"compress/gzip"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strconv"

	"github.com/bkbtuner/bkb/bench/experiment"
	"github.com/bkbtuner/bkb/tuner/space"
)

// readCSV calls row with the fields of every line of a gzipped file of the data directory,
// without the header if there is one. The fields are only valid until row returns. The
// errors are [*experiment.DataError] and those of reading and of row, with path and line.
func readCSV(data, file string, comma rune, header bool, row func(fields []string) error) error {
	path, err := (&experiment.Env{Data: data}).File(file)
	if err != nil {
		return err
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	unzipped, err := gzip.NewReader(f)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	r := csv.NewReader(unzipped)
	r.Comma, r.ReuseRecord = comma, true
	for {
		fields, err := r.Read()
		if errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		if header {
			header = false
			continue
		}
		if err := row(fields); err != nil {
			line, _ := r.FieldPos(0)
			return fmt.Errorf("%s, line %d: %w", path, line, err)
		}
	}
}

// numbers parses fields and appends them.
func numbers(fields []string, into []float64) ([]float64, error) {
	for _, text := range fields {
		if text == "" { // not measured
			continue
		}
		x, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return nil, err
		}
		into = append(into, x)
	}
	return into, nil
}

// csvTable lists a table whose lines are parameters and then measurements. The function
// measure converts the measurements to values to minimize, in place.
func csvTable(name string, tier Tier, file string, header bool, columns func() []*column, measure func(y []float64) []float64) Listed {
	name = "table/" + name
	return Listed{name, tier, func(data string) (Problem, error) {
		t, err := newTable(name, columns()...)
		if err != nil {
			return nil, err
		}
		var y []float64
		err = readCSV(data, file, ',', header, func(fields []string) error {
			var err error
			if y, err = numbers(fields[len(t.columns):], y[:0]); err != nil {
				return err
			}
			return t.add(fields, measure(y)...)
		})
		if err != nil {
			return nil, err
		}
		return t.finish()
	}}
}

// logarithms converts losses that span orders of magnitude.
func logarithms(y []float64) []float64 {
	for i, v := range y {
		y[i] = math.Log(v)
	}
	return y
}

// shortOf converts accuracies to their distance from the highest.
func shortOf(highest float64) func(y []float64) []float64 {
	return func(y []float64) []float64 {
		for i, v := range y {
			y[i] = highest - v
		}
		return y
	}
}

// fcnet is a network of two layers on a regression problem, 62,208 configurations with four
// seeds each (Klein and Hutter 2019, arXiv:1905.04970). Values are logarithms of the
// validation loss.
func fcnet(tier Tier, set string) Listed {
	return csvTable("fcnet-"+set, tier, "hpo_simplehpobench/hpolib_"+set+".csv.gz", true, func() []*column {
		dropout := func(name string) *column {
			return &column{parameter: space.NewFloat(name, 0, 0.6).WithStep(space.Float(0.3))}
		}
		units := ints(16, 32, 64, 128, 256, 512)
		return []*column{
			categorical("activation_1", texts("relu", "tanh")...), categorical("activation_2", texts("relu", "tanh")...),
			ordinal("batch_size", ints(8, 16, 32, 64)...), dropout("dropout_1"), dropout("dropout_2"),
			ordinal("init_lr", floats(5e-4, 1e-3, 5e-3, 1e-2, 5e-2, 1e-1)...),
			categorical("lr_schedule", texts("cosine", "const")...),
			ordinal("units_1", units...), ordinal("units_2", units...),
		}
	}, logarithms)
}

// hpobench is a multi-layer perceptron on a classification problem, 30,000 configurations
// with five seeds each (Eggensperger et al. 2021, HPOBench). Values are errors on
// validation data. Most tables have several configurations that are best or nearly so.
func hpobench(tier Tier, set string) Listed {
	return csvTable("hpobench-"+set, tier, "hpo_simplehpobench/hpobench_"+set+".csv.gz", true, func() []*column {
		return []*column{
			ordinal("alpha", floats(1e-8, 7.742637e-8, 5.994842e-7, 4.641589e-6, 3.5938137e-5, 0.00027825593, 0.0021544348, 0.016681006, 0.12915497, 1)...),
			ordinal("batch_size", ints(4, 6, 10, 16, 25, 40, 64, 101, 161, 256)...),
			stepped("depth", 1, 3, 1),
			ordinal("learning_rate", floats(1e-5, 3.5938137e-5, 0.00012915497, 0.0004641589, 0.0016681006, 0.0059948424, 0.021544347, 0.07742637, 0.27825594, 1)...),
			ordinal("width", ints(16, 25, 40, 64, 101, 161, 256, 406, 645, 1024)...),
		}
	}, shortOf(1))
}

// nasbench is NAS-Bench-201 on CIFAR-10. It varies the six operations of a cell, 15,625
// networks with two or three seeds each (Dong and Yang 2020, arXiv:2001.00326). Values are
// errors on validation data in per cent.
func nasbench(tier Tier) Listed {
	return csvTable("nasbench201-cifar10", tier, "hpo_simplehpobench/nasbench201_cifar10.csv.gz", true, func() []*column {
		var out []*column
		for i := range 6 {
			out = append(out, categorical(fmt.Sprintf("op%d", i), texts("none", "skip_connect", "nor_conv_1x1", "nor_conv_3x3", "avg_pool_3x3")...))
		}
		return out
	}, shortOf(100))
}

// structuredSVM is a latent structured support-vector machine that finds motifs of
// proteins, 1,400 configurations (Miller et al. 2012, Snoek et al. 2012). Values are errors
// on validation data.
func structuredSVM(tier Tier) Listed {
	return csvTable("structured-svm", tier, "hpo_snoek2012/svm.csv.gz", false, func() []*column {
		return []*column{
			ordinal("C", floats(0.1, 1, 5, 10, 25, 50, 75, 100, 200, 300, 400, 500, 600, 700, 800, 900, 1000, 2000, 3000, 4000, 5000, 6000, 7000, 10000, 1000000)...),
			ordinal("alpha", floats(0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1, 1.5, 2, 3, 5)...),
			ordinal("epsilon", floats(1e-4, 1e-3, 0.01, 0.1)...),
		}
	}, func(y []float64) []float64 { return y[:1] }) // the second is seconds
}
