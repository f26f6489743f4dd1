"""ImageNet-CoG: how well features generalize to concepts ever further from those seen in training."""
