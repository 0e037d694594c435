package bo

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/bkbtuner/bkb/tuner/space"
)

// svm is the grid of support-vector machines on a data set. It has 288 configurations and a
// space with conditions (Wistuba et al. 2015). Values are errors on validation data.
func svm(tier Tier, set string) Listed {
	name := "table/svm-" + strings.ToLower(set)
	return Listed{name, tier, func(data string) (Problem, error) {
		c := ordinal("C", floats(0.03125, 0.0625, 0.125, 0.25, 0.5, 1, 2, 4, 8, 16, 32, 64)...)
		gamma := &column{parameter: space.NewOrdinal("gamma", floats(1e-4, 1e-3, 0.01, 0.05, 0.1, 0.5, 1, 2, 5, 10, 20, 50, 100, 1000)...).Given("kernel", space.String("rbf"))}
		degree := &column{parameter: space.NewInt("degree", 2, 10).Given("kernel", space.String("poly"))}
		t, err := newTable(name, categorical("kernel", texts("rbf", "poly", "linear")...), c, gamma, degree)
		if err != nil {
			return nil, err
		}
		err = readCSV(data, "hpo_svm_tst/"+set+".txt.gz", ' ', false, func(fields []string) error {
			if len(fields) < 7 {
				return fmt.Errorf("%d fields, want 7 or more", len(fields))
			}
			config, accuracy, err := decodeSVM(fields)
			if err != nil {
				return err
			}
			return t.add(config, 1-accuracy)
		})
		if err != nil {
			return nil, err
		}
		return t.finish()
	}}
}

// decodeSVM turns a line into kernel, C, γ and degree ("" if there is none), and the
// accuracy. The file has log₂C/6, log₁₀γ/4 and log₁₀degree.
func decodeSVM(fields []string) (config []string, accuracy float64, err error) {
	y, err := numbers(fields[:7], nil)
	if err != nil || len(y) < 7 {
		return nil, 0, fmt.Errorf("%v are not seven numbers: %w", fields[:7], err)
	}
	decimal := func(v float64) string { return strconv.FormatFloat(v, 'g', 6, 64) }
	c := decimal(math.Exp2(math.Round(6 * y[4])))
	switch {
	case y[1] == 1:
		return []string{"rbf", c, decimal(math.Pow(10, 4*y[5])), ""}, y[0], nil
	case y[2] == 1:
		return []string{"poly", c, "", decimal(math.Pow(10, y[6]))}, y[0], nil
	case y[3] == 1:
		return []string{"linear", c, "", ""}, y[0], nil
	}
	return nil, 0, fmt.Errorf("%v has no kernel", fields[1:4])
}
