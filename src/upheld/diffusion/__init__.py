"""What generative methods by noise share: affine paths and schedules, small networks, one training loop, samplers.

Time runs from noise (t = 0) to data (t = 1). A path ``x_t = alpha x_1 + sigma x_0`` turns any prediction (velocity, end point,
noise) into any other and into the score; networks take ``(x, t)`` or ``(x, t, condition)``; the training loop knows a loss and
nothing of what is trained, and goes on after an interruption with the same numbers.

Everything here needs torch, so names are imported from where they are defined: `upheld.diffusion.paths`,
`upheld.diffusion.schedules`, `upheld.diffusion.networks`, `upheld.diffusion.losses`, `upheld.diffusion.training`,
`upheld.diffusion.samplers`.
"""
