"""A small convolutional network with batch normalisation and dropout takes a few steps."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)


class ConvNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 6, kernel_size=3, padding=1)
        self.bn1 = nn.BatchNorm2d(6)
        self.conv2 = nn.Conv2d(6, 12, 3, stride=2, bias=False)
        self.pool = nn.MaxPool2d(2)
        self.drop = nn.Dropout(p=0.25)
        self.fc = nn.Linear(12 * 3 * 3, 10)

    def forward(self, x):
        x = self.pool(F.relu(self.bn1(self.conv1(x))))
        x = F.relu(self.conv2(x))
        x = self.drop(torch.flatten(x, 1))
        return F.log_softmax(self.fc(x), dim=1)


net = ConvNet()
print(net)
print(net.conv1.weight[0], net.bn1.running_mean, net.bn1.num_batches_tracked)
images = torch.rand(32, 1, 16, 16)
labels = torch.randint(0, 10, (32,))
print(images.mean(), labels)
opt = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9, nesterov=True, weight_decay=1e-4)
net.train()
for step in range(6):
    opt.zero_grad()
    out = net(images)
    loss = F.nll_loss(out, labels)
    loss.backward()
    opt.step()
    print(f"step {step}: loss {loss.item():.4f}, correct {out.argmax(1).eq(labels).sum().item()}/32")
print(out.grad_fn, loss.grad_fn)
print({name: round(p.grad.abs().sum().item(), 2) for name, p in net.named_parameters()})
net.eval()
print(net.training, net.drop.training, net.bn1.num_batches_tracked, net.bn1.running_mean[:3], net.bn1.running_var[:3])
with torch.no_grad():
    out = net(images)
print(out.shape, out.exp().sum(1).sub(1).abs().max() < 1e-6, out.requires_grad)
print(sum(p.numel() for p in net.parameters() if p.requires_grad), list(net.state_dict()))
for module in net.children():
    print(type(module).__name__, sum(p.numel() for p in module.parameters()))
x = torch.arange(16.).view(1, 1, 4, 4)
print(F.max_pool2d(x, 2), F.avg_pool2d(x, 2), F.adaptive_avg_pool2d(x, 1), F.max_pool2d(x, 2, return_indices=True)[1])
print(F.conv2d(x, torch.ones(1, 1, 2, 2)), F.conv2d(x, torch.ones(1, 1, 3, 3), padding=1, stride=2), F.pad(x, (1, 0, 0, 1)).shape)
print(F.conv_transpose2d(torch.ones(1, 1, 2, 2), torch.ones(1, 1, 2, 2), stride=2), F.unfold(x, 2).shape, F.interpolate(x, scale_factor=0.5))
print(nn.Conv1d(2, 3, 2), nn.ConvTranspose2d(2, 4, 3, stride=2, output_padding=1), nn.AvgPool2d(3, 2), nn.AdaptiveAvgPool2d((1, 1)), nn.Upsample(scale_factor=2))
