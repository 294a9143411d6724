# mgcv's bam, random intercept, a penalised smooth of the metric with as many coefficients as isuit's.
source("common.R")
suppressPackageStartupMessages(library(mgcv))

start <- cpu()
fit <- bam(outcome ~ s(x, k = 23) + s(rider, bs = "re"), binomial, cohort, discrete = TRUE, nthreads = 1)
smooth <- fit$smooth[[2]]
effects <- coef(fit)[smooth$first.para:smooth$last.para]
at <- data.frame(x = grid$x, rider = cohort$rider[1])
curve <- predict(fit, at, se.fit = TRUE, exclude = "s(rider)", discrete = FALSE)
spent <- cpu() - start

# The sd of an "re" smooth: its penalty is the identity up to the scaling that the fit records.
a <- sqrt(fit$sig2 / (fit$sp[["s(rider)"]] / smooth$S.scale))
answer(spent, a, -curve$fit / a, effects / a, curve$se.fit / a)
