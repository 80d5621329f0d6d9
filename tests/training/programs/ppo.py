"""Proximal policy optimisation in an environment made here: many carts that balance poles at once."""

import argparse
import math

import torch
from torch import nn
from torch.distributions import Categorical

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=50)
args = parser.parse_args()
torch.manual_seed(6)
CARTS, LENGTH, EPOCHS, GAMMA, LAMBDA, CLIP = 16, 32, 4, 0.99, 0.95, 0.2


class Carts:
    """Poles on carts: states of position, speed, angle and its speed; actions push left or right."""

    def __init__(self, count):
        self.state = torch.empty(count, 4).uniform_(-0.05, 0.05)

    def step(self, action):
        x, dx, angle, turn = self.state.unbind(1)
        force = torch.where(action == 1, 10.0, -10.0)
        sine, cosine = angle.sin(), angle.cos()
        pushed = (force + 0.05 * turn.square() * sine) / 1.1
        turning = (9.8 * sine - cosine * pushed) / (0.5 * (4 / 3 - 0.1 * cosine.square() / 1.1))
        moving = pushed - 0.05 * turning * cosine / 1.1
        self.state = torch.stack([x + 0.02 * dx, dx + 0.02 * moving, angle + 0.02 * turn, turn + 0.02 * turning], 1)
        fallen = (self.state[:, 0].abs() > 2.4) | (self.state[:, 2].abs() > 12 * math.pi / 180)
        self.state[fallen] = torch.empty(int(fallen.sum()), 4).uniform_(-0.05, 0.05)
        return torch.where(fallen, -1.0, 1.0), fallen


def layer(inner, outer, gain):
    made = nn.Linear(inner, outer)
    nn.init.orthogonal_(made.weight, gain)
    nn.init.zeros_(made.bias)
    return made


class Agent(nn.Module):
    def __init__(self):
        super().__init__()
        self.actor = nn.Sequential(layer(4, 64, 2**0.5), nn.Tanh(), layer(64, 64, 2**0.5), nn.Tanh(),
                                   layer(64, 2, 0.01))
        self.critic = nn.Sequential(layer(4, 64, 2**0.5), nn.Tanh(), layer(64, 64, 2**0.5), nn.Tanh(),
                                    layer(64, 1, 1.0))

    def forward(self, state):
        return Categorical(logits=self.actor(state)), self.critic(state).squeeze(-1)


agent, carts = Agent(), Carts(CARTS)
optimizer = torch.optim.Adam(agent.parameters(), lr=1e-3, eps=1e-5)
schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.2, total_iters=20)
step = 0
while step < args.steps:
    states, actions, chances, values, rewards, ends = ([] for _ in range(6))
    with torch.no_grad():
        for _ in range(LENGTH):
            policy, value = agent(carts.state)
            action = policy.sample()
            states.append(carts.state)
            actions.append(action)
            chances.append(policy.log_prob(action))
            values.append(value)
            reward, ended = carts.step(action)
            rewards.append(reward)
            ends.append(ended)
        following = agent(carts.state)[1]
    advantages, last = [], torch.zeros(CARTS)
    for t in reversed(range(LENGTH)):
        goes_on = (~ends[t]).float()
        last = rewards[t] + GAMMA * following * goes_on - values[t] + GAMMA * LAMBDA * goes_on * last
        following = values[t]
        advantages.insert(0, last)
    states, actions, chances = (torch.cat(kept) for kept in (states, actions, chances))
    advantages = torch.cat(advantages)
    returns = advantages + torch.cat(values)
    for _ in range(EPOCHS):
        for rows in torch.randperm(len(states)).split(128):
            policy, value = agent(states[rows])
            ratio = (policy.log_prob(actions[rows]) - chances[rows]).exp()
            gain = advantages[rows]
            gain = (gain - gain.mean()) / (gain.std() + 1e-8)
            surrogate = torch.min(ratio * gain, ratio.clamp(1 - CLIP, 1 + CLIP) * gain).mean()
            loss = 0.5 * (value - returns[rows]).square().mean() - surrogate - 0.01 * policy.entropy().mean()
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(agent.parameters(), 0.5)
            optimizer.step()
            step += 1
    schedule.step()
print(f"reward {torch.stack(rewards).mean():.3f}")
