"""The type promotion table, for tensors, scalars and zero-dimensional tensors."""
import torch

kinds = [torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.complex64, torch.complex128]
for a in kinds:
    print(str(a)[6:], [str(torch.promote_types(a, b))[6:] for b in kinds])
for a in kinds:
    t = torch.ones(2, dtype=a)
    zero_dim = torch.ones((), dtype=a)
    row = []
    for other in (True, 2, 2.5, 1j, torch.tensor(3), torch.tensor(2.0, dtype=torch.float64), torch.tensor(1j)):
        if a == torch.float16 and torch.result_type(torch.ones(1), other).is_complex:
            continue
        row.append(str(torch.result_type(t, other))[6:])
        assert (t * other).dtype == torch.result_type(t, other)
    print(str(a)[6:], row, str((zero_dim * 2.5).dtype)[6:], str((zero_dim + torch.ones(1, dtype=torch.int16)).dtype)[6:])
for a in kinds:
    t = torch.ones(2, dtype=a)
    print(str(a)[6:], end=": ")
    for name, f in (("div", lambda: t / 2), ("floordiv", lambda: t // 2), ("pow", lambda: t ** 2), ("sum", lambda: t.sum()), ("mean", lambda: t.mean()), ("prod", lambda: t.prod()), ("cumsum", lambda: t.cumsum(0)), ("sin", lambda: t.sin()), ("abs", lambda: t.abs()),
                    ("sqrt", lambda: t.sqrt()), ("eq", lambda: t == 1), ("neg", lambda: -t), ("max", lambda: t.max()), ("argmax", lambda: t.argmax()), ("where", lambda: torch.where(t == 1, t, 0)), ("cat", lambda: torch.cat([t, torch.ones(1)])), ("mm", lambda: t @ t), ("exp", lambda: t.exp()),
                    ("clamp", lambda: t.clamp(0, 1.5)), ("norm", lambda: t.norm()), ("and", lambda: t & t), ("rsub", lambda: 1 - t), ("sigmoid", lambda: t.sigmoid()), ("bitnot", lambda: ~t), ("mod", lambda: t % 2), ("round", lambda: t.round()), ("sign", lambda: t.sign()), ("std", lambda: t.std()), ("shift", lambda: t << 1), ("isnan", lambda: t.isnan())):
        try:
            print(f"{name}={str(f().dtype)[6:]}", end=" ")
        except Exception as e:
            print(f"{name}={type(e).__name__}: {e}", end=" ")
    print()
x = torch.ones(2, dtype=torch.int32)
print(torch.can_cast(torch.float32, torch.int32), torch.can_cast(torch.int32, torch.float64), x.to(torch.float64).dtype, x.float().dtype, x.long().dtype, x.bool(), x.byte(), x.char().dtype, x.short().dtype, x.type(torch.float16), x.type_as(torch.ones(1)), x.to(torch.ones(1, dtype=torch.complex64)).dtype)
print(torch.tensor([1.9, -1.9, 300.]).int(), torch.tensor([1.9, -1.9]).byte(), torch.tensor([-1, 256, 257]).to(torch.uint8), torch.tensor([2**40]).int(), torch.tensor([0.0, 0.5, float("nan")]).bool(), torch.tensor([True, False]).float())
print(torch.tensor(5) / torch.tensor(2), torch.tensor(5) // torch.tensor(2), torch.div(torch.tensor([-7, 7]), 2, rounding_mode="trunc"), torch.div(torch.tensor([-7, 7]), 2, rounding_mode="floor"), torch.true_divide(torch.tensor(1), 2), torch.tensor([127], dtype=torch.int8) + 1, torch.tensor([255], dtype=torch.uint8) + 1)
