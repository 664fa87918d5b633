"""Trains a small residual network on the handwritten digits of the repository.

    python resnet.py [--epochs 10] [--save FILE]
"""

import argparse
import pathlib
import time

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset, random_split

DATA = pathlib.Path(__file__).resolve().parents[2] / "examples" / "data"


class BasicBlock(nn.Module):
    expansion = 1

    def __init__(self, in_planes, planes, stride=1):
        super(BasicBlock, self).__init__()
        self.conv1 = nn.Conv2d(in_planes, planes, kernel_size=3, stride=stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(planes)
        self.conv2 = nn.Conv2d(planes, planes, kernel_size=3, stride=1, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(planes)
        self.shortcut = nn.Sequential()
        if stride != 1 or in_planes != self.expansion * planes:
            self.shortcut = nn.Sequential(
                nn.Conv2d(in_planes, self.expansion * planes, kernel_size=1, stride=stride, bias=False),
                nn.BatchNorm2d(self.expansion * planes),
            )

    def forward(self, x):
        out = F.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        out += self.shortcut(x)
        return F.relu(out)


class ResNet(nn.Module):
    def __init__(self, block, num_blocks, width=16, num_classes=10):
        super(ResNet, self).__init__()
        self.in_planes = width
        self.conv1 = nn.Conv2d(1, width, kernel_size=3, stride=1, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.layer1 = self._make_layer(block, width, num_blocks[0], stride=1)
        self.layer2 = self._make_layer(block, 2 * width, num_blocks[1], stride=2)
        self.avgpool = nn.AdaptiveAvgPool2d((1, 1))
        self.fc = nn.Linear(2 * width * block.expansion, num_classes)
        for m in self.modules():
            if isinstance(m, nn.Conv2d):
                nn.init.kaiming_normal_(m.weight, mode="fan_out", nonlinearity="relu")
            elif isinstance(m, nn.BatchNorm2d):
                nn.init.constant_(m.weight, 1)
                nn.init.constant_(m.bias, 0)

    def _make_layer(self, block, planes, num_blocks, stride):
        layers = []
        for stride in [stride] + [1] * (num_blocks - 1):
            layers.append(block(self.in_planes, planes, stride))
            self.in_planes = planes * block.expansion
        return nn.Sequential(*layers)

    def forward(self, x):
        x = F.relu(self.bn1(self.conv1(x)))
        x = self.layer1(x)
        x = self.layer2(x)
        x = self.avgpool(x)
        x = torch.flatten(x, 1)
        return self.fc(x)


def idx(name):
    raw = (DATA / name).read_bytes()
    shape = [int.from_bytes(raw[4 + 4 * i : 8 + 4 * i], "big") for i in range(raw[3])]
    return np.frombuffer(raw, np.uint8, offset=4 + 4 * len(shape)).reshape(shape).copy()


def load_data():
    images, labels = torch.from_numpy(idx("images.idx3-ubyte")), torch.from_numpy(idx("labels.idx1-ubyte"))
    images = images.unsqueeze(1).float()
    images = images / images.max()
    mean, std = images.mean(), images.std()
    return TensorDataset((images - mean) / std, labels.long())


def train(model, loader, criterion, optimizer, scheduler, device):
    model.train()
    train_loss, total = 0.0, 0
    for inputs, targets in loader:
        inputs, targets = inputs.to(device, non_blocking=True), targets.to(device, non_blocking=True)
        optimizer.zero_grad()
        outputs = model(inputs)
        loss = criterion(outputs, targets)
        loss.backward()
        optimizer.step()
        scheduler.step()
        train_loss += loss.item() * targets.size(0)
        total += targets.size(0)
    return train_loss / total


@torch.no_grad()
def evaluate(model, loader, device):
    model.eval()
    correct, total = 0, 0
    for inputs, targets in loader:
        outputs = model(inputs.to(device))
        predicted = outputs.argmax(dim=1)
        correct += predicted.eq(targets.to(device)).sum().item()
        total += targets.size(0)
    return correct / total


def main(argv=None):
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--lr", type=float, default=0.1)
    parser.add_argument("--width", type=int, default=16)
    parser.add_argument("--save", default=None)
    args = parser.parse_args(argv)

    torch.manual_seed(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    dataset = load_data()
    trainset, testset = random_split(dataset, [len(dataset) - len(dataset) // 6, len(dataset) // 6])
    trainloader = DataLoader(trainset, batch_size=args.batch_size, shuffle=True, num_workers=0, drop_last=True)
    testloader = DataLoader(testset, batch_size=args.batch_size, shuffle=False)

    model = ResNet(BasicBlock, [1, 1], width=args.width).to(device)
    print(f"{sum(p.numel() for p in model.parameters() if p.requires_grad):,} parameters on {device}")
    criterion = nn.CrossEntropyLoss(label_smoothing=0.05)
    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr, momentum=0.9, weight_decay=5e-4, nesterov=True)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=args.epochs * len(trainloader))

    best = 0.0
    for epoch in range(args.epochs):
        began = time.time()
        loss = train(model, trainloader, criterion, optimizer, scheduler, device)
        accuracy = evaluate(model, testloader, device)
        lr = scheduler.get_last_lr()[0]
        print(f"epoch {epoch + 1}: loss {loss:.4f}, accuracy {accuracy:.2%}, lr {lr:.4f}, {time.time() - began:.1f} s")
        if accuracy > best:
            best = accuracy
            if args.save:
                torch.save(model.state_dict(), args.save)
    if args.save:
        again = ResNet(BasicBlock, [1, 1], width=args.width).to(device)
        again.load_state_dict(torch.load(args.save, map_location=device))
        assert abs(evaluate(again, testloader, device) - best) < 1e-9
    return best


if __name__ == "__main__":
    main()
