package wire

import (
	pb "github.com/bkbtuner/bkb/proto/tuner/v1"
	"github.com/bkbtuner/bkb/tuner/propose"
)

// EncodeDiagnosis makes the wire's form of how a model stands.
func EncodeDiagnosis(d propose.Diagnosis) *pb.Diagnosis {
	return &pb.Diagnosis{
		Results: int64(d.Results), InducingPoints: int64(d.InducingPoints), Capped: d.Capped,
		EffectiveDimension: d.EffectiveDimension, InformationGain: d.InformationGain, Noise: d.Noise,
		Beta: d.Beta, TheoryBeta: d.TheoryBeta, Gap: d.Gap, Warnings: d.Warnings,
	}
}

// DecodeDiagnosis reads how a model stands.
func DecodeDiagnosis(m *pb.Diagnosis) (propose.Diagnosis, error) {
	var d decoder
	out := propose.Diagnosis{
		Results:        number[int](&d, "results", m.GetResults()),
		InducingPoints: number[int](&d, "inducing_points", m.GetInducingPoints()), Capped: m.GetCapped(),
		EffectiveDimension: m.GetEffectiveDimension(), InformationGain: m.GetInformationGain(), Noise: m.GetNoise(),
		Beta: m.GetBeta(), TheoryBeta: m.GetTheoryBeta(), Gap: m.GetGap(), Warnings: m.GetWarnings(),
	}
	return out, d.err
}
