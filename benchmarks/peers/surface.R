# mgcv's bam on many cohorts of two metrics: te() of both and a random rider. Run as `Rscript surface.R FOLDER`.
# Of each cohort-N.csv with rider, x, y, outcome, and points-N.csv with x, y, it writes answer-N.csv: difficulty, se.
suppressPackageStartupMessages(library(mgcv))
folder <- commandArgs(trailingOnly = TRUE)[1]
for (path in list.files(folder, "^cohort-[0-9]+\\.csv$", full.names = TRUE)) {
  start <- sum(proc.time()[1:2])
  cohort <- read.csv(path)
  cohort$rider <- factor(cohort$rider)
  at <- read.csv(sub("cohort-", "points-", path))
  at$rider <- cohort$rider[1]
  fit <- bam(outcome ~ te(x, y, k = 8) + s(rider, bs = "re"), binomial, cohort, discrete = TRUE, nthreads = 1)
  smooth <- fit$smooth[[2]]
  # The sd of an "re" smooth: its penalty is the identity up to the scaling that the fit records.
  a <- sqrt(fit$sig2 / (fit$sp[["s(rider)"]] / smooth$S.scale))
  surface <- predict(fit, at, se.fit = TRUE, exclude = "s(rider)", discrete = FALSE)
  answer <- data.frame(difficulty = -surface$fit / a, se = surface$se.fit / a, cpu = sum(proc.time()[1:2]) - start)
  write.csv(answer, sub("cohort-", "answer-", path), row.names = FALSE)
}
