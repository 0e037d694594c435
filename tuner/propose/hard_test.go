package propose

import (
	"math"

	"github.com/bkbtuner/bkb/tuner/propose/labtest"
)

// Two functions of the benchmark BBOB, in 3 dimensions and of instance 1, above their
// minima (Hansen, Finck, Ros and Auger, Real-parameter black-box optimization benchmarking
// 2009, noiseless functions definitions). Module bench has all of them.

type matrix3 [3][3]float64

// times returns m·x.
func (m matrix3) times(x []float64) []float64 {
	out := make([]float64, 3)
	for i, row := range m {
		for j, v := range row {
			out[i] += v * x[j]
		}
	}
	return out
}

func minus3(x []float64, y [3]float64) []float64 {
	return []float64{x[0] - y[0], x[1] - y[1], x[2] - y[2]}
}

// ellipsoid is f10, a rotated ellipsoid of condition 10⁶ with small irregularities.
func ellipsoid(t labtest.Fataler) task {
	optimum := [3]float64{-1.7264, -1.508, -1.3736000000000002}
	rotation := matrix3{
		{-0.032580429923207484, -0.2961796602961638, -0.9545764109870242},
		{-0.9922393006134379, 0.12425458688504012, -0.004686998632761718},
		{-0.11999869126025703, -0.9470155259893457, 0.2979293668488364},
	}
	irregular := func(x float64) float64 {
		a, b := 1.0, 0.79
		if x < 0 {
			a, b = 0.55, 0.31
		}
		t := 10 * math.Log(math.Abs(x))
		return math.Copysign(math.Exp(0.1*(t+0.49*(math.Sin(a*t)+math.Sin(b*t)))), x)
	}
	return boxTask(t, function{Label: "ellipsoid3", Dim: 3, F: func(x []float64) float64 {
		sum, weight := 0.0, 1.0
		for _, v := range rotation.times(minus3(x, optimum)) {
			if v != 0 {
				v = irregular(v)
			}
			sum += weight * v * v
			weight *= 1e3
		}
		return sum
	}})
}

// funnel is f18, Schaffer's function of condition 1000, a funnel with many local minima.
func funnel(t labtest.Fataler) task {
	optimum := [3]float64{3.6559999999999997, 2.5496, -1.5295999999999998}
	before := matrix3{
		{0.4748423926895333, 0.255385947936735, 0.8422011159463839},
		{-0.2979538004333218, -0.8538059010571221, 0.42689461946407337},
		{-0.8280991697328403, 0.45364468575801825, 0.32933002318538984},
	}
	after := matrix3{
		{0.004994334620098011, 0.951910615821846, 0.3063351695567724},
		{0.38187038185012945, -0.2849382778427035, 0.8791957627773641},
		{-0.9242023956295171, -0.11258933033688577, 0.36492954745670086},
	}
	return boxTask(t, function{Label: "funnel3", Dim: 3, F: func(x []float64) float64 {
		z := before.times(minus3(x, optimum))
		for i, v := range z {
			if v > 0 {
				z[i] = math.Pow(v, 1+0.25*float64(i)*math.Sqrt(v))
			}
		}
		z = after.times(z)
		for i := range z {
			z[i] *= math.Pow(math.Sqrt(1000), float64(i)/2)
		}
		sum := 0.0
		for i := range 2 {
			s := z[i]*z[i] + z[i+1]*z[i+1]
			wave := math.Sin(50 * math.Pow(s, 0.1))
			sum += math.Sqrt(math.Sqrt(s)) * (1 + wave*wave)
		}
		return sum * sum / 4
	}})
}
