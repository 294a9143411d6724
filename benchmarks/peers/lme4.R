# lme4, random intercept, quadratic in the metric. OPTION is nAGQ: 0 (no integration), 1 (Laplace), more (quadrature).
source("common.R")
suppressPackageStartupMessages(library(lme4))
nodes <- as.integer(arguments[3])

start <- cpu()
fit <- glmer(outcome ~ x + I(x^2) + (1 | rider), cohort, binomial, nAGQ = nodes)
skill <- ranef(fit, condVar = FALSE)$rider[, 1]
covariance <- as.matrix(vcov(fit))
spent <- cpu() - start

a <- attr(VarCorr(fit)$rider, "stddev")[[1]]
answer(spent, a, -(at_grid %*% fixef(fit)) / a, skill / a, se_with_known_sd(covariance, a))
