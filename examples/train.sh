#!/bin/sh
# A simulated training run, to try "tuner run":
#
#   tuner run train --space examples/train.yaml --minimize loss --max-trials 30 \
#     --parallel 4 -- examples/train.sh --lr {lr} --batch {batch}
#
# It takes --lr, --batch and --epochs. It prints an intermediate loss after each epoch
# and the final loss at the end. An epoch takes PAUSE seconds (0.1).
set -eu

lr=0.01 batch=32 epochs=5
while [ $# -gt 0 ]; do
  case $1 in
    --lr) lr=$2 ;;
    --batch) batch=$2 ;;
    --epochs) epochs=$2 ;;
    *) echo "train.sh: unknown option $1" >&2; exit 2 ;;
  esac
  shift 2
done

epoch=1
while [ "$epoch" -le "$epochs" ]; do
  sleep "${PAUSE:-0.1}"
  awk -v lr="$lr" -v batch="$batch" -v epoch="$epoch" 'BEGIN {
    x = log(lr / 0.003) / log(10); y = log(batch / 64) / log(2)
    printf "step=%d loss=%.5f\n", epoch, 0.1 + 0.15 * x * x + 0.01 * y * y + 2 * exp(-epoch)
  }'
  epoch=$((epoch + 1))
done
awk -v lr="$lr" -v batch="$batch" 'BEGIN {
  x = log(lr / 0.003) / log(10); y = log(batch / 64) / log(2)
  printf "loss=%.5f\n", 0.1 + 0.15 * x * x + 0.01 * y * y
}'
