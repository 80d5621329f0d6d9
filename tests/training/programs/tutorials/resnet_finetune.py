"""A small residual network, trained, saved, and fine-tuned on other classes with frozen layers and hooks for features."""

import argparse
import copy
import os
import tempfile
from functools import partial

import torch
from torch import Tensor, nn
from torch.optim import SGD
from torch.optim.lr_scheduler import CosineAnnealingWarmRestarts, LinearLR, MultiStepLR, SequentialLR
from torch.utils.data import DataLoader, Subset, TensorDataset, WeightedRandomSampler, random_split

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=50)
args = parser.parse_args()
torch.manual_seed(11)


def conv3x3(i: int, o: int, stride: int = 1) -> nn.Conv2d:
    return nn.Conv2d(i, o, kernel_size=3, stride=stride, padding=1, bias=False)


class BasicBlock(nn.Module):
    expansion: int = 1

    def __init__(self, inplanes, planes, stride=1, downsample=None, norm_layer=nn.BatchNorm2d):
        super().__init__()
        self.conv1, self.bn1 = conv3x3(inplanes, planes, stride), norm_layer(planes)
        self.relu = nn.ReLU(inplace=True)
        self.conv2, self.bn2 = conv3x3(planes, planes), norm_layer(planes)
        self.downsample = downsample

    def forward(self, x: Tensor) -> Tensor:
        identity = x if self.downsample is None else self.downsample(x)
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        out += identity
        return self.relu(out)


class ResNet(nn.Module):
    def __init__(self, num_classes, zero_init_residual=True):
        super().__init__()
        self.inplanes = 8
        self.stem = nn.Sequential(conv3x3(3, 8), nn.BatchNorm2d(8), nn.ReLU(inplace=True))
        self.layer1, self.layer2 = self._make_layer(8, 1), self._make_layer(16, 2, 2)
        self.avgpool, self.fc = nn.AdaptiveAvgPool2d((1, 1)), nn.Linear(16, num_classes)
        for m in self.modules():
            if isinstance(m, nn.Conv2d):
                nn.init.kaiming_normal_(m.weight, mode="fan_out", nonlinearity="relu")
            elif isinstance(m, (nn.BatchNorm2d, nn.GroupNorm)):
                nn.init.constant_(m.weight, 1)
                nn.init.constant_(m.bias, 0)
            if isinstance(m, BasicBlock) and zero_init_residual:
                nn.init.constant_(m.bn2.weight, 0)

    def _make_layer(self, planes, blocks, stride=1):
        downsample = None
        if stride != 1 or self.inplanes != planes:
            downsample = nn.Sequential(nn.Conv2d(self.inplanes, planes, 1, stride, bias=False), nn.BatchNorm2d(planes))
        layers = [BasicBlock(self.inplanes, planes, stride, downsample)]
        self.inplanes = planes
        return nn.Sequential(*layers, *(BasicBlock(planes, planes) for _ in range(1, blocks)))

    def forward(self, x):
        x = self.layer2(self.layer1(self.stem(x)))
        return self.fc(torch.flatten(self.avgpool(x), 1))


def pictures(count, classes):
    labels = torch.randint(classes, (count,))
    x = torch.randn(count, 3, 12, 12) * 0.5
    x[torch.arange(count), labels % 3] += torch.linspace(-1, 1, 12) * (labels[:, None, None] + 1)
    return TensorDataset(x, labels)


def train(model, loader, optimizer, scheduler, steps):
    criterion, done = nn.CrossEntropyLoss(label_smoothing=0.1), 0
    model.train()
    while done < steps:
        for x, y in loader:
            optimizer.zero_grad(set_to_none=True)
            loss = criterion(model(x), y)
            loss.backward()
            optimizer.step()
            scheduler.step()
            done += 1
            if done == steps:
                break
    return loss.item()


whole = pictures(300, 4)
train_set, val_set = random_split(whole, [0.8, 0.2], generator=torch.Generator().manual_seed(42))
weights = torch.where(whole.tensors[1][train_set.indices] == 0, 2.0, 1.0)
loader = DataLoader(train_set, batch_size=32, sampler=WeightedRandomSampler(weights, len(train_set)))
model = ResNet(4)
decay = [p for n, p in model.named_parameters() if p.ndim > 1]
rest = [p for n, p in model.named_parameters() if p.ndim <= 1]
optimizer = SGD([{"params": decay, "weight_decay": 1e-4}, {"params": rest}], lr=0.02, momentum=0.9, nesterov=True)
scheduler = SequentialLR(optimizer, [LinearLR(optimizer, 0.1, total_iters=5), CosineAnnealingWarmRestarts(optimizer, 10, 2)],
                         milestones=[5])
first = args.steps - args.steps // 3
print(f"{train(model, loader, optimizer, scheduler, first):.4f}", [f"{g['lr']:.5f}" for g in optimizer.param_groups])
with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "model.pt")
    torch.save({"state_dict": model.state_dict(), "args": vars(args)}, path)
    checkpoint = torch.load(path, map_location=torch.device("cpu"), weights_only=False)
tuned = ResNet(2)
state = {k: v for k, v in checkpoint["state_dict"].items() if not k.startswith("fc.")}
print(tuned.load_state_dict(state, strict=False))
for name, param in tuned.named_parameters():
    param.requires_grad_(name.startswith(("fc", "layer2")))
features = {}
handle = tuned.avgpool.register_forward_hook(partial(lambda name, module, i, o: features.update({name: o.detach()}), "pool"))
optimizer = SGD(filter(lambda p: p.requires_grad, tuned.parameters()), lr=0.01, momentum=0.9)
other = Subset(pictures(64, 2), range(48))
if args.steps // 3:
    print(f"{train(tuned, DataLoader(other, 16, shuffle=True), optimizer, MultiStepLR(optimizer, [3, 6], 0.1), args.steps // 3):.4f}")
before = copy.deepcopy(tuned).eval()
tuned.eval()
with torch.inference_mode():
    x, y = next(iter(DataLoader(other, 48)))
    print((tuned(x).argmax(1) == y).float().mean().item(), torch.equal(tuned(x), before(x)))
handle.remove()
print({k: tuple(v.shape) for k, v in features.items()}, sum(p.numel() for p in tuned.parameters() if p.requires_grad))
