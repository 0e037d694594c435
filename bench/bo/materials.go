package bo

import (
	"strconv"

	"github.com/bkbtuner/bkb/tuner/space"
)

// crossedBarrel is the toughness of printed structures of hollow columns, 600 designs
// printed and crushed three times each (Gongora et al. 2020). Values are toughness in J,
// negated.
//
// Of radii in steps of 0.1 every other one was measured, depending on the angle. A radius
// between two of them has the measurements of the next smaller one. The smallest has those
// of the next larger.
func crossedBarrel(tier Tier) Listed {
	const name = "table/materials-crossed-barrel"
	return Listed{name, tier, func(data string) (Problem, error) {
		columns, angle, thickness, radius := stepped("columns", 6, 12, 2), stepped("angle", 0, 200, 25),
			ordinal("thickness", floats(0.7, 1.05, 1.4)...), &column{parameter: space.NewFloat("radius", 1.5, 2.5).WithStep(space.Float(0.1))}
		t, err := newTable(name, columns, angle, thickness, radius)
		if err != nil {
			return nil, err
		}
		measured := map[[4]string][]float64{}
		var order [][4]string
		err = readCSV(data, "materials_pvlab/Crossed_barrel_dataset.csv.gz", ',', true, func(fields []string) error {
			key := [4]string{fields[0], fields[1], fields[3], fields[2]}
			y, err := strconv.ParseFloat(fields[4], 64)
			if err != nil {
				return err
			}
			if measured[key] == nil {
				order = append(order, key)
			}
			measured[key] = append(measured[key], -y)
			return nil
		})
		if err != nil {
			return nil, err
		}
		for _, key := range order {
			if err := t.add(key[:], measured[key]...); err != nil {
				return nil, err
			}
		}
		t.fill(radius)
		return t.finish()
	}}
}

// fill gives configurations that were not measured the row of the next smaller level of a
// parameter, or of the next larger if there is none.
func (t *table) fill(c *column) {
	measured := make([]int32, len(t.row))
	copy(measured, t.row)
	for code, r := range measured {
		if r >= 0 {
			continue
		}
		if code/c.stride%len(c.levels) > 0 {
			t.row[code] = measured[code-c.stride]
		} else {
			t.row[code] = measured[code+c.stride]
		}
	}
}
