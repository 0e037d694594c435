#!/bin/sh
# Trains logistic regression on polynomial features of two rings in awk, by stochastic
# gradient descent with momentum. After every epoch it prints the loss on validation rows
# as "step=3 loss=0.41". tuner run and worker.sh read these lines.
set -eu

lr=0.1 batch=16 momentum=0 epochs=10
while [ $# -gt 1 ]; do
  case $1 in
    --lr) lr=$2 ;;
    --batch) batch=$2 ;;
    --momentum) momentum=$2 ;;
    --epochs) epochs=$2 ;;
    *) echo "train.sh: unknown option $1" >&2; exit 2 ;;
  esac
  shift 2
done

exec awk -v lr="$lr" -v batch="$batch" -v momentum="$momentum" -v epochs="$epochs" '
function gauss() { return sqrt(-2 * log(1 - rand())) * cos(6.283185307 * rand()) }
function row(i,   r, t) { # features of a point of the inner (-1) or outer (1) ring
  label[i] = i % 2 ? 1 : -1
  r = (i % 2 ? 1.6 : 0.8) + 0.25 * gauss(); t = 6.283185307 * rand()
  x[i, 1] = 1; x[i, 2] = r * cos(t); x[i, 3] = r * sin(t)
  x[i, 4] = x[i, 2] ^ 2; x[i, 5] = x[i, 3] ^ 2; x[i, 6] = x[i, 2] * x[i, 3]
}
function margin(i,   j, s) { for (j = 1; j <= 6; j++) s += w[j] * x[i, j]; return label[i] * s }
function loss(i,   m) { m = margin(i); return m < -30 ? -m : log(1 + exp(-m)) }
BEGIN {
  srand(1); n = 300
  for (i = 0; i < 2 * n; i++) row(i)
  for (epoch = 1; epoch <= epochs; epoch++) {
    for (at = 0; at < n; at += batch) {
      for (j = 1; j <= 6; j++) g[j] = 0
      for (k = 0; k < batch; k++) {
        i = int(n * rand()); m = margin(i); s = label[i] / (1 + exp(m > 30 ? 30 : m)) / batch
        for (j = 1; j <= 6; j++) g[j] += s * x[i, j]
      }
      for (j = 1; j <= 6; j++) { v[j] = momentum * v[j] + g[j]; w[j] += lr * v[j] }
    }
    sum = 0
    for (i = n; i < 2 * n; i++) sum += loss(i)
    printf "step=%d loss=%.5f\n", epoch, sum / n
    fflush()
  }
}'
