"""What a fit says about itself: scores of outcomes kept back, assumptions, exposure, the easiest metric."""
