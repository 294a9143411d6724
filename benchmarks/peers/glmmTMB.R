# glmmTMB, random intercept, quadratic in the metric, Laplace approximation.
source("common.R")
suppressPackageStartupMessages(library(glmmTMB))

start <- cpu()
fit <- glmmTMB(outcome ~ x + I(x^2) + (1 | rider), cohort, binomial)
skill <- ranef(fit)$cond$rider[, 1]
covariance <- as.matrix(vcov(fit, full = TRUE)) # of the coefficients and of the log sd of skill
spent <- cpu() - start

a <- attr(VarCorr(fit)$cond$rider, "stddev")[[1]]
difficulty <- -(at_grid %*% fixef(fit)$cond) / a
slope <- cbind(-at_grid / a, -difficulty)
answer(spent, a, difficulty, skill / a, sqrt(rowSums((slope %*% covariance) * slope)))
