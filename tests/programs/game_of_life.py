"""Conway's Game of Life with conv2d, and with roll."""
import torch
import torch.nn.functional as F

board = torch.zeros(8, 8, dtype=torch.int)
board[[0, 1, 2, 2, 2], [1, 2, 0, 1, 2]] = 1
board[5, 4:7] = 1
kernel = torch.ones(1, 1, 3, 3)
kernel[0, 0, 1, 1] = 0


def step_conv(b):
    padded = F.pad(b[None, None].float(), (1, 1, 1, 1), mode="circular")
    n = F.conv2d(padded, kernel)[0, 0]
    return ((n == 3) | ((b == 1) & (n == 2))).int()


def step_roll(b):
    n = sum(b.roll((i, j), (0, 1)) for i in (-1, 0, 1) for j in (-1, 0, 1) if (i, j) != (0, 0))
    return ((n == 3) | (b.bool() & (n == 2))).to(torch.int)


other = board.clone()
for generation in range(6):
    print(f"generation {generation}: {board.sum().item()} alive")
    for row in board:
        print("".join(".#"[c] for c in row))
    board, other = step_conv(board), step_roll(other)
    assert torch.equal(board, other)
print(board, board.nonzero().tolist())
gen = torch.manual_seed(1)
soup = (torch.rand(32, 32, generator=gen) < 0.3).int()
for _ in range(20):
    soup = step_conv(soup)
print(soup.sum(), soup.float().mean(), soup.sum(0)[:8], soup.any(1).all())
