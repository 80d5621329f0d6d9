"""Random programs whose effects under flambeau and PyTorch are compared, statement by statement.

A program is Python source text made from a seed (`generation`), run with `torch` bound to either
library (`execution`); after its statements all that a user can see of every tensor is recorded
(`observation`) and compared (`comparison`); what disagrees is reduced (`shrinking`) and printed.

    python -m tests.random_programs --programs 2000
    python -m tests.random_programs --replay 1234

Two other generators make short programs: `calls` of every operator with a schema, with arguments that fit and that do
not; `objects` of modules, losses, optimizers, files, random numbers, transforms and printing, and of what `wide_topics`
lists.

    python -m tests.random_programs.calls --programs 2000 --once --most 100
    python -m tests.random_programs.objects --programs 2000 --most 100

What programs do not do, since there the two are known to differ (`tests/torch_deviations.txt`
says why), or PyTorch crashes or does what is not defined:

- write to gradients that `autograd.grad` returned before they are cloned;
- differentiate through a Function that returns None for a tensor with a history;
- write to what `gather`, `take`, `index_add`, `masked_select` or `torch.complex` read;
- change the shape in place of a tensor with views, or of a view of another dtype;
- copy between parts of one memory that overlap;
- run backward, or make leaves, in inference mode;
- put hooks on views that require grad only because their base does;
- take `conj()` or `imag` of what is then looked at as a view, or mix float16 with complex numbers in place;
- look at whose views the results of transforms are;
- roll elements of a batch under `vmap` (PyTorch rolls the batch), or assign at indices that are out of range, of which
  PyTorch writes those that come first;
- make complex numbers of float16.
"""
