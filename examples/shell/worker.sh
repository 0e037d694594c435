#!/bin/sh
# A worker in shell. It asks a server for trials until the study has finished. For each
# trial it runs train.sh, reports the losses, stops the training when the server says so,
# and tells the result. See README.md.
#
#   worker.sh STUDY
set -u
study=$1
here=$(dirname "$0")
worker=$(hostname)-$$

while :; do
  trial=$(tuner ask "$study" --worker "$worker" --wait -f env)
  status=$?
  [ $status -eq 10 ] && exit 0 # the study has finished
  [ $status -eq 0 ] || exit $status
  eval "$trial"
  last=$(mktemp)
  {
    sh "$here/train.sh" --lr "$TUNER_PARAM_LR" --batch "$TUNER_PARAM_BATCH" --momentum "$TUNER_PARAM_MOMENTUM"
    echo "exit=$?"
  } | while read -r step loss; do
    case $step in
      exit=0) exit 0 ;;
      exit=*) exit 1 ;;
    esac
    echo "$loss" > "$last"
    # Exit status 14 means stop. The training ends when its output is no longer read.
    tuner report "$study" "$TUNER_TRIAL" --epoch "$TUNER_EPOCH" --step "${step#step=}" "$loss" --exit-code > /dev/null || exit
  done
  end=$?
  [ $end -ne 0 ] || [ -s "$last" ] || end=1 # no loss was printed
  case $end in
    0) tuner tell "$study" "$TUNER_TRIAL" --epoch "$TUNER_EPOCH" "$(cat "$last")" -q ;;
    14) tuner tell "$study" "$TUNER_TRIAL" --epoch "$TUNER_EPOCH" --state pruned -q ;;
    *) tuner tell "$study" "$TUNER_TRIAL" --epoch "$TUNER_EPOCH" --state failed --message "see the output of worker.sh" -q ;;
  esac
  rm -f "$last"
done
