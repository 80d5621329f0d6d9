"""Loss functions: reductions, weights, targets, gradients."""
import torch
import torch.nn as nn
import torch.nn.functional as F

x = torch.tensor([[1.0, -2.0, 0.5], [0.1, 0.2, 3.0]], requires_grad=True)
t = torch.tensor([2, 0])
for reduction in ("none", "sum", "mean"):
    print(reduction, F.cross_entropy(x, t, reduction=reduction), F.mse_loss(x, torch.ones(2, 3), reduction=reduction), F.l1_loss(x, torch.zeros(2, 3), reduction=reduction), F.smooth_l1_loss(x, torch.zeros(2, 3), reduction=reduction))
    print(F.huber_loss(x, torch.zeros(2, 3), delta=0.5, reduction=reduction), F.binary_cross_entropy_with_logits(x, torch.ones(2, 3), reduction=reduction), F.nll_loss(x.log_softmax(1), t, reduction=reduction))
    print(F.kl_div(x.log_softmax(1), torch.full((2, 3), 1 / 3), reduction=reduction), F.hinge_embedding_loss(x, torch.ones(2, 3), reduction=reduction), F.poisson_nll_loss(x, torch.ones(2, 3), reduction=reduction).mul(100).round(), F.multi_margin_loss(x, t, reduction=reduction))
print(F.cross_entropy(x, t, weight=torch.tensor([1., 2., 3.])), F.cross_entropy(x, t, label_smoothing=0.1), F.cross_entropy(x, torch.softmax(torch.ones(2, 3), 1)), F.cross_entropy(x, torch.tensor([2, -100])), F.cross_entropy(x, torch.tensor([-1, 0]), ignore_index=-1), F.cross_entropy(x[0], t[0]))
print(F.cross_entropy(torch.zeros(2, 3, 4, 4), torch.zeros(2, 4, 4, dtype=torch.long)), F.triplet_margin_loss(x, x + 1, x - 2), F.cosine_embedding_loss(x, x.flip(1), torch.tensor([1, -1])), F.margin_ranking_loss(x[0], x[1], torch.ones(3)), F.gaussian_nll_loss(x, torch.zeros(2, 3), torch.ones(2, 3)))
print(F.binary_cross_entropy(torch.sigmoid(x), torch.zeros(2, 3), weight=torch.tensor([1., 0., 2.])), F.multilabel_soft_margin_loss(x, torch.ones(2, 3)), F.multilabel_margin_loss(x, torch.tensor([[0, 1, -1], [2, -1, -1]])))
for loss in (nn.CrossEntropyLoss(label_smoothing=0.2), nn.NLLLoss(), nn.MSELoss(), nn.L1Loss(), nn.HuberLoss(), nn.SmoothL1Loss(beta=0.5), nn.BCEWithLogitsLoss(), nn.KLDivLoss(reduction="batchmean"), nn.MultiMarginLoss(margin=0.5)):
    target = t if isinstance(loss, (nn.CrossEntropyLoss, nn.NLLLoss, nn.MultiMarginLoss)) else torch.full((2, 3), 0.25)
    value = loss(x, target)
    g, = torch.autograd.grad(value, x)
    print(loss, value, g, value.grad_fn.name())
F.mse_loss(torch.ones(3, 1), torch.ones(3))
F.l1_loss(torch.ones(2, 1), torch.ones(2))
F.kl_div(x.log_softmax(1), torch.full((2, 3), 1 / 3))
F.softmax(x)
F.mse_loss(x, torch.ones(2, 3), size_average=False)
nn.MSELoss(reduce=False)
torch.sigmoid(x), F.sigmoid(x), F.tanh(x)
nn.Dropout2d()(torch.ones(2, 3))
for f in (lambda: F.mse_loss(x, torch.ones(2, 3), reduction="avg"), lambda: F.nll_loss(x, torch.tensor([3, 0])), lambda: F.nll_loss(x, torch.tensor([0])), lambda: F.cross_entropy(x, torch.ones(2, 4)), lambda: F.cross_entropy(x, t, weight=torch.ones(2)), lambda: F.cross_entropy(x, t, label_smoothing=2.0),
          lambda: F.binary_cross_entropy_with_logits(x, torch.ones(2)), lambda: F.smooth_l1_loss(x, x, beta=-1), lambda: nn.CrossEntropyLoss(reduction="x")(x, t), lambda: F.cosine_embedding_loss(x, x, torch.ones(2, 2)), lambda: nn.MSELoss()(x), lambda: F.kl_div(x, x, reduction="bad"), lambda: nn.BCELoss()(x, torch.ones(2, 3))):
    try:
        print(f())
    except Exception as e:
        print(type(e).__name__, "|", e)
