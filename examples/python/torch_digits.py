"""Tunes a small network of PyTorch on the digits of scikit-learn.

    pip install ../../python scikit-learn torch
    python torch_digits.py [TRIALS]

It reports the validation loss after every epoch. The pruner stops trials that are worse
than the median of the others at the same epoch. The study is in tuner.db, and the same
command continues it.
"""

import sys

import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

import bkb

EPOCHS, BATCH = 15, 128
trials = int(sys.argv[1]) if len(sys.argv) > 1 else 30
x, y = load_digits(return_X_y=True)
split = train_test_split(x / 16, y, test_size=0.3, random_state=1, stratify=y)
x_train, x_valid = (torch.tensor(a, dtype=torch.float32) for a in split[:2])
y_train, y_valid = (torch.tensor(a, dtype=torch.long) for a in split[2:])


def train(trial: bkb.Trial) -> float:
    torch.manual_seed(trial.number)
    width = trial["width"]
    net = torch.nn.Sequential(
        torch.nn.Linear(64, width),
        torch.nn.ReLU(),
        torch.nn.Dropout(trial["dropout"]),
        torch.nn.Linear(width, 10),
    )
    optimizer = torch.optim.AdamW(net.parameters(), trial["lr"], weight_decay=trial["decay"])
    loss = torch.nn.CrossEntropyLoss()
    value = float("nan")
    for epoch in range(EPOCHS):
        net.train()
        for rows in torch.randperm(len(x_train)).split(BATCH):
            optimizer.zero_grad()
            loss(net(x_train[rows]), y_train[rows]).backward()
            optimizer.step()
        net.eval()
        with torch.no_grad():
            value = loss(net(x_valid), y_valid).item()
        trial.report(value, epoch)
        if trial.should_prune():
            raise bkb.TrialPruned
    return value


study = bkb.create_study(
    "torch-digits",
    {
        "lr": bkb.Float(1e-5, 1e-1, log=True),
        "width": bkb.Int(8, 256, log=True),
        "dropout": bkb.Float(0, 0.7),
        "decay": bkb.Float(1e-6, 1e-1, log=True),
    },
    minimize="loss",
    pruner="median",
    max_trials=trials,
    exist_ok=True,
)
study.optimize(train)
best = study.best_trial
print(f"{study.status.pruned} of {trials} trials pruned")
print(f"best: {best.value:.4f} with {best.params}")
