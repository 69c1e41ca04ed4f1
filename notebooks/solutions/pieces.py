"""Hints for the pieces of `tiny`: from the first idea to what to read."""

HINTS = {
    "at.Place.set": (
        "which array may change? One that nobody else has.",
        "`np.array(self.array)` is a copy; then `copy[self.index] = values`.",
        '"Break it" in this chapter, where the copy is forgotten.',
    ),
    "at.Place.add": (
        "`copy[index] += values` counts an index once, however often it comes.",
        "`np.add.at(copy, self.index, values)`, on a copy.",
        "`np.add.at` in NumPy's documentation.",
    ),
    "trace.bind": (
        "are there tracers among the operands? Without one, MEANING computes.",
        "the equation belongs to the innermost of the tracers' programs: the one that "
        "stands last in OPEN. SHAPES gives the types of its results.",
        "`DynamicJaxprTrace.process_primitive` in minijax/core/partial_eval.py.",
    ),
    "trace.trace": (
        "the function runs once, on tracers, while the program is in OPEN.",
        "what must happen after an exception, too, stands under `finally`; `flatten` "
        "gives both the outputs and `program.tree`.",
        "`bind`, which writes into the programs of OPEN; `Program.__call__`.",
    ),
    "trace.evaluate": (
        "a dict from tracers to values; read from it, call, write into it.",
        "write `read(operand)` first: a tracer that is in the dict, or else "
        "`outside(operand)`. The outputs are read in the same way.",
        "`eval_jaxpr` in minijax/core/language.py.",
    ),
    "cache.Jitted.key": (
        "what can tracing see of an argument? That, and nothing else, is in the key.",
        "an argument that is static is in it by its value and its type; the others by "
        "their tree and what `seen_of` gives for each leaf.",
        '"Build it" in this chapter, where the key is described.',
    ),
    "cache.Jitted.__call__": (
        "a static argument is a Python value while tracing: it must not be an argument "
        "of the function that `trace` gets.",
        "write `without_statics(*arrays)` inside: copy `args`, put the arrays in where "
        "no static stands, call `self.function`.",
        "`JitFunction._compile` in minijax/core/jit.py.",
    ),
    "tree.flatten": (
        "what is not in REGISTRY is a leaf.",
        "take it apart, flatten each child, and collect leaves and structures.",
        "`unflatten` and `build`, which go the other way.",
    ),
    "tree.paths": (
        "of a leaf the answer is a list of one place: the one that was handed down.",
        'for each child call `paths(child, f"{place}[{name!r}]")`, and join the lists.',
        "`flatten`, which goes through the children in the same order.",
    ),
    "tree.map_tree": (
        "flatten all trees, and put their leaves side by side: `zip`.",
        "compare each structure with the first one before anything is computed.",
        "`tree_map` in minijax/support/tree_util.py.",
    ),
    "threefry.threefry": (
        "two loops, one in the other: five groups, and the four distances of a group.",
        "to rotate by d: `(b << np.uint32(d)) | (b >> np.uint32(32 - d))`.",
        '`after_each_round` in this chapter, under "Break it".',
    ),
    "threefry.uniform": (
        "floats between 1 and 2 have one exponent: only their last 23 bits differ.",
        "shift the bits right by 9, put the exponent 0x3F800000 in, and take `.view`.",
        '"Build it" in this chapter, on bits and floats.',
    ),
    "tangents.slopes": (
        "write the inner function first: it takes Duals, and params.",
        "the answer is `bind` on the values; a part for each operand that has a rule "
        "and a tangent; None if there is no part.",
        "`apply_jvp` in minijax/core/autodiff.py.",
    ),
    "tangents.rules_of_school": (
        "write the derivative on paper, and multiply it by t.",
        "div: t / y, and -t * x * y**-2. tanh: 1 - answer * answer. pow by its second "
        "operand: log(x) * answer.",
        "the lambdas of minijax's own rules, in minijax/primitives.",
    ),
    "tangents.jvp": (
        "trace the function, flatten the arguments and the tangents.",
        "evaluate(program, TANGENTS, the Duals, outside=Dual), then unflatten the "
        "values and the tangents by program.tree.",
        "`linearize` in chapter 07 has the same shape.",
    ),
    "linearize.linearize": (
        "two programs: one is traced from the function, one begins empty.",
        "the empty one must be in OPEN while the table TANGENTS runs, with Duals of "
        "numbers and of its own input tracers.",
        "`LinearizeTrace` in minijax/core/autodiff.py.",
    ),
    "linearize.outside": (
        "two rounds: first all that is made inside, then all that is used.",
        "a dict from `id(operand)` to the operand keeps each thing once.",
        "`evaluate` in chapter 02: what it would ask `outside` for, but for numbers.",
    ),
    "transposes.rules_of_entries": (
        "the operation sends a change forward; c is sent back along the same line.",
        "mul: the first operand gets c * y, the second x * c. sub: c and -c.",
        "the column `up` of `see.grad` in this chapter.",
    ),
    "transposes.dot_back": (
        "z = x @ y: x gets c @ y.T. Which axes of c and of y does that sum over?",
        "one dot_general of c and y, over the free axes of y, which are the last ones "
        "of c; its result has the batch axes, the free axes of x, and the rest of y.",
        "`MEANING['dot_general']` in tiny/operations.py says the order of the axes; "
        "`np.argsort` turns an order round.",
    ),
    "transposes.backward": (
        "keep a dict from a tracer to the cotangent that has come to it so far.",
        "the last equation first: its results' cotangents go to TRANSPOSES, with "
        "Unknown in place of each linear operand; what comes back is added.",
        "`backward_pass` in minijax/core/autodiff.py.",
    ),
    "batching.entries_of_many": (
        "if all operands with axes have one shape and one axis, nothing must be moved.",
        "else the examples go to the front, and axes of size 1 behind them, so that "
        "operands of fewer axes still meet.",
        "`entry_by_entry` in chapter 02, for one example.",
    ),
    "batching.dot_of_many": (
        "three cases: both operands have an axis of examples, only x, only y.",
        "of x alone: its axis is one of the free ones of x; count the batch axes, and "
        "then the free axes of x before it. Of y alone: behind all free axes of x.",
        "`_batched_numbers` in minijax/core/dot.py.",
    ),
    "batching.vmap": (
        "trace the function for one example; its type is `example(leaf, axis)`.",
        "evaluate(program, Many(), the Batched operands, outside=Batched); then each "
        "result's examples to the front, and from there to out_axes.",
        "`jvp` in chapter 06: the same, with another table.",
    ),
    "nesting.hvp": (
        "the gradient is a function; how does it change if x moves along v?",
        "jvp of grad.",
        "`hessian_times` in this chapter.",
    ),
    "nesting.jacrev": (
        "one row: what `back` gives for a row of the identity. All rows: a vmap.",
        "how many rows are there? As many as the value has entries.",
        "`jacfwd`, above the cell.",
    ),
    "nesting.implicit": (
        "x first, by bind on the values; then two jvp of the program at x.",
        "the slope has a tangent of ones for x; the change has a's tangent.",
        "the five steps above the cell.",
    ),
    "loops.cond": (
        "trace both, compare, and only then write the equation.",
        "both branches get the same inputs, found and their own. The operands are the "
        "condition, found, and the leaves of args.",
        "`cond` in minijax/programs/control_flow/conditionals.py.",
    ),
    "loops.scan": (
        "the body has three kinds of inputs: found, carry, row; and of outputs: found, "
        "carry, row.",
        "a row's type is `Type(type_of(x).shape[1:], type_of(x).dtype)`; count is "
        "len(found) + len(the carry's leaves).",
        "`run_scan`, the next cell, which uses all of the parameters.",
    ),
    "loop_rules.scan_change": (
        "two calls of `scan`: the first is the loop as it was, with one result more "
        "for each round; the second has tangents in place of values.",
        "the step of the first returns `results[:count], (results[count:], "
        "tracers_outside(linear))`; the rows of the second are a pair, too.",
        "`linearize` in chapter 07: what is outside of its program is the residuals.",
    ),
    "loop_rules.cond_of_many": (
        "has the condition an axis? That decides whether one branch runs, or both.",
        "`many(branch, size, axes)` is a branch for all examples; BATCHING['select_n'] "
        "picks for each of them.",
        "`scan_of_many`, the next rule.",
    ),
    "loop_rules.scan_of_many": (
        "the carry's type may not change, so it has its examples from the start.",
        "axes of the step: 0 for each carry; for a row 0 or None, as its array has an "
        "axis or not. The step gets one list: carry and row.",
        "`cond_of_many`, the rule above.",
    ),
    "custom.remat": (
        "one equation holds the traced function as its parameter `body`.",
        "what the function takes from outside must become inputs of the body, and "
        "operands of the equation: `tracers_outside` finds it.",
        "`remat_change`, which calls `remat` itself.",
    ),
    "custom.custom_vjp": (
        "`remat` has the same shape, with one parameter instead of three.",
        "flatten the cotangents of `back` as one tuple: it may give trees.",
        "`custom_back`, below, which calls your `flat_back`.",
    ),
    "custom.custom_of_many": (
        "back of one example, batched, gives each operand one cotangent an example.",
        "an operand that all share is used by each of them, and uses add up.",
        "`remat_of_many`, above, for the trace of `many`.",
    ),
    "leaks.leaks": (
        "a list of tracers keeps tracers alive: hold weak references only.",
        "`del` the program and your lists before `gc.collect()`; then call each "
        "reference.",
        "`holders` and `told`, in the cell above.",
    ),
    "fuser.kernels_of": (
        "a kernel is a list of equations; which is the first one that an equation may "
        "join?",
        "not before the last kernel that makes one of its operands; and `fits` must "
        "hold with the kernel's first equation.",
        '"Build it" in this chapter; `written` and `run` use what you return.',
    ),
    "fuser.run": (
        "a block: `made = compute(kernel, values, partial(of_block, shape, part))`.",
        "for each result that is kept collect its blocks in a list; join them when the "
        "kernel is done.",
        "`compute` and `of_block`, in the next cell.",
    ),
    "export.write": (
        "take the equation apart, and begin with the primitives in WORDS.",
        "the names of the operands come from `text.given`, before the line is written; "
        "`text.line(operation, result)` adds the name of the result.",
        "`print(jit(f).lower(x).as_text())` shows each kind of line.",
    ),
    "export.checked": (
        "flatten the arguments; two things are compared.",
        "the structure with the tree, then the type of each leaf with its own: "
        "a TypeError for each.",
        "`type_of` in chapter 02.",
    ),
    "export.load": (
        "what `save` writes first must be read first.",
        "MAGIC, then 32 bytes of digest, then the body: compare before json.loads.",
        "`save`, and `tree_from_json`.",
    ),
    "modules.Scope.child": (
        "a module's name is its kind and a number: how many of this kind were there?",
        "`init` puts a dict for the child into params, where it stays; `apply` finds "
        "it there, and a module without weights has none.",
        "the path of the child is the scope's own, with one name more.",
    ),
    "modules.Scope.param": (
        "three cases: the weight is there; it is not, and there is a key; neither.",
        "count in `self.made`, and make it with `key_for(self.key, self.path, "
        "self.made)`; a KeyError if there is no key.",
        "the shape is compared at the end, also of a weight that was there.",
    ),
    "optimizers.chain": (
        "the state is a tuple: one state for each transform.",
        "what one update returns is the grads of the next; collect the states.",
        "`Transform`: init takes the weights, update takes grads, state and weights.",
    ),
    "optimizers.scale_by_adam": (
        "nothing is kept in Python: what update needs from before is in the state.",
        "running(grads, state.mean, b1, 1), running(grads, state.square, b2, 2), and "
        "one more count; then divide the corrected ones.",
        "`running`, `corrected` and `counted`, above the cell.",
    ),
    "optimizers.add_decayed_weights": (
        "it remembers nothing: `stateless` makes it out of a function.",
        "`tree_map_with_path(one, grads, params)` calls one(path, grad, weight).",
        "an entry of a path has the name as `.key`; join them with a slash.",
    ),
    "optimizers.apply_updates": (
        "two trees of one structure: `tree.map` takes both.",
        "a weight keeps its dtype, whatever the update's is.",
        "`.astype(p.dtype)`",
    ),
    "placed.slices": (
        "one dimension at a time: into how many pieces, and which one is mine?",
        "number = number * size + index, over the axes of a dimension; the same for "
        "the count of pieces.",
        "`names_of` and `places`, above the cell.",
    ),
    "collectives.all_reduce": (
        "what a device passes on is what it got in the round before.",
        "n - 1 rounds: passing = ppermute(passing, ring(n)); then add it to the total.",
        "`reduce_scatter`, which is below the cell.",
    ),
    "collectives.reduce_scatter": (
        "think back from the end: in the last round the sum of part d comes to d.",
        "device d begins with its part d - 1, and in round t it adds its own part "
        "d - 1 - t; all numbers modulo n.",
        "`all_reduce`, where whole pieces go around.",
    ),
    "collectives.all_gather": (
        "keep what arrives under the number of the device it comes from.",
        "in round t the piece of device (d - t) % n arrives at d.",
        "`all_reduce`: the same rounds, and nothing is added.",
    ),
    "kernels.pallas_call": (
        "the output is made before the first program: np.full(shape, np.nan).",
        "`for place[:] in itertools.product(*map(range, grid))`; a block of each array "
        "by `block(array, spec, spec.index_map(*place))`.",
        "minijax/kernels/interpreter.py.",
    ),
    "attention.online_softmax": (
        "what must be done with the sum when a larger number comes?",
        "weight * exp(old - new): the sum, as if the larger one had been there before.",
        "the formula above the cell.",
    ),
    "attention.flash_attention": (
        "a kernel for a block of queries; a loop over blocks of keys in it.",
        "the weight and the total are both shrunk by exp(old - new) before a block is "
        "added; the division comes last.",
        "`online_softmax`, and `pallas_call` of chapter 18.",
    ),
    "printing.run": (
        "which equation can run? One whose operands have values.",
        "`waiting.pop(choose(ready))` takes one out; a number needs no value.",
        "`evaluate` in chapter 02: the same, in the order of the program.",
    ),
    "printing.threaded": (
        "a new Program, with the inputs of the old one and a token.",
        "each print takes the last token as one more operand and gives a new one; the "
        "last goes out.",
        "`Program` and `Equation` in chapter 02.",
    ),
    "recurrence.recur_tangent": (
        "in y[t] = a[t] * y[t-1] + x[t] three things move: a[t], y[t-1] and x[t].",
        "the change of y is a recurrence with the same a; what comes in at step t is "
        "dx[t] + da[t] * y[t-1]. `toy_shift(y, reverse)` is y[t-1] at t.",
        "`slopes` in chapter 06: a tangent that is None adds no part.",
    ),
    "recurrence.recur_transpose": (
        "x[t] is in y[t], and through y[t] in y[t+1]: so its cotangent is c[t] plus "
        "a[t+1] times the cotangent of x[t+1].",
        "that is a recurrence from the other end, with a moved by one place.",
        "the transpose of `shift`, a few lines above; `reverse` may be True already.",
    ),
    "recurrence.recur_of_many": (
        "recur goes along the last axis and leaves the others alone: where may the "
        "examples stand?",
        "`to_front(x, size)` moves the examples to axis 0, or repeats what has none.",
        "`shift_of_many` above, and `to_front` and `size_of` in chapter 08.",
    ),
    "intervals.product": (
        "with a negative factor the larger number gives the smaller product.",
        "the extremes are among four products: each end times each end.",
        "`np.minimum` and `np.maximum` work entry by entry; the ends may be arrays.",
    ),
    "intervals.power": (
        "an odd power grows with x. What does an even one do left of 0?",
        "an even power of an interval that crosses 0 begins at 0.",
        "`np.where(crosses, 0.0, ...)`; some entries may cross and others not.",
    ),
    "intervals.bounds": (
        "trace, then evaluate with another table: this is the shape of `jvp`.",
        "evaluate(program, INTERVALS, intervals, outside=...): a number from outside "
        "is an interval with two equal ends.",
        "`jvp` in chapter 06; the results go back into `program.tree`.",
    ),
}
