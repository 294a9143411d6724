"""The paper's recovery experiment: a cohort with known truth, its fit, and how well the truth came back."""
