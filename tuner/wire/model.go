package wire

import (
	pb "github.com/bkbtuner/bkb/proto/tuner/v1"
	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/surrogate"
)

// EncodeDiagnosis encodes a diagnosis of a model.
func EncodeDiagnosis(d surrogate.Diagnosis) *pb.Diagnosis {
	m, _ := encode[*pb.Diagnosis](d) // which has nothing that is refused
	return m
}

// EncodeImportance encodes importances.
func EncodeImportance(i tuner.Importance) *pb.Importance {
	m, _ := encode[*pb.Importance](i)
	return m
}

// EncodePredictions encodes predictions.
func EncodePredictions(p tuner.Predictions) *pb.PredictResponse {
	m, _ := encode[*pb.PredictResponse](p)
	if p.Through.Len() > 0 {
		m.Through, _ = encodeConfiguration(p.Through)
	}
	if p.Trial != tuner.NoTrial {
		trial := int64(p.Trial)
		m.Trial = &trial
	}
	return m
}

func decodePredictions(m *pb.PredictResponse) (tuner.Predictions, error) {
	p, err := decode[tuner.Predictions](m)
	p.Through, p.Trial = DecodeConfig(m.GetThrough().GetValues()), tuner.NoTrial
	if m.Trial != nil {
		p.Trial = int(m.GetTrial())
	}
	return p, err
}
