"""Zero-shot and generalized zero-shot learning: "the good, the bad and the ugly" (Xian et al., CVPR 2017)."""
