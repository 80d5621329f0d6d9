"""Character models: RNN, LSTM and GRU, and a cell unrolled by hand."""
import torch
import torch.nn as nn

text = "hello world, hello torch"
chars = sorted(set(text))
stoi = {c: i for i, c in enumerate(chars)}
ids = torch.tensor([stoi[c] for c in text])
print(len(chars), ids)


class CharModel(nn.Module):
    def __init__(self, kind, vocab, hidden=16, layers=1):
        super().__init__()
        self.embed = nn.Embedding(vocab, 8)
        self.rnn = getattr(nn, kind)(8, hidden, num_layers=layers, batch_first=True)
        self.head = nn.Linear(hidden, vocab)

    def forward(self, x, state=None):
        out, state = self.rnn(self.embed(x), state)
        return self.head(out), state


for kind in ("RNN", "LSTM", "GRU"):
    torch.manual_seed(5)
    model = CharModel(kind, len(chars), layers=2 if kind == "LSTM" else 1)
    print(model)
    print([(n, tuple(p.shape)) for n, p in model.rnn.named_parameters()])
    opt = torch.optim.Adam(model.parameters(), lr=0.02)
    x, y = ids[:-1].unsqueeze(0), ids[1:].unsqueeze(0)
    for step in range(41):
        logits, state = model(x)
        loss = nn.functional.cross_entropy(logits.view(-1, len(chars)), y.view(-1))
        opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_value_(model.parameters(), 0.5)
        opt.step()
        if step % 10 == 0:
            print(step, f"{loss.item():.3f}")
    model.eval()
    with torch.no_grad():
        state, cur, said = None, ids[:1].unsqueeze(0), "h"
        for _ in range(10):
            logits, state = model(cur, state)
            cur = logits[:, -1].argmax(-1, keepdim=True)
            said += chars[cur.item()]
    print(repr(said), type(state).__name__)

torch.manual_seed(0)
cell = nn.LSTMCell(3, 4)
h, c = torch.zeros(2, 4), torch.zeros(2, 4)
for t in range(3):
    h, c = cell(torch.ones(2, 3) * t, (h, c))
print(h, c.shape)
gru = nn.GRU(3, 4, bidirectional=True)
out, hn = gru(torch.randn(5, 2, 3))
print(out.shape, hn.shape, out[0, 0])
print(nn.RNNCell(3, 4)(torch.ones(3)).shape, nn.RNN(3, 4, nonlinearity="relu")(torch.ones(2, 3))[0].shape)
