# Programs of R with rider and site, each given what it does best. Run as `Rscript sites.R NAME FOLDER OUT`.
# The folder has the cohort as binary columns and the metrics at which every site's difficulty is asked for.
arguments <- commandArgs(trailingOnly = TRUE)
name <- arguments[1]
folder <- arguments[2]
out <- arguments[3]

column <- function(file, kind) {
  path <- file.path(folder, file)
  size <- if (kind == "double") 8 else 4
  readBin(path, kind, n = file.size(path) / size, size = size, endian = "little")
}
unit <- function(metric) (metric - 18) / 8
cohort <- data.frame(
  rider = factor(column("rider.i32", "integer")),
  site = factor(column("site.i32", "integer")),
  x = unit(column("metric.f64", "double")),
  outcome = column("outcome.i32", "integer")
)
x <- unit(column("grid.f64", "double"))
sites <- levels(cohort$site)
cpu <- function() sum(proc.time()[c("user.self", "sys.self")])

# Of a model with fixed effects and independent level, tilt and bend of each site: log odds at each site and metric,
# and their standard errors from the fixed effects' covariance and the sites' conditional variances.
of_quadratic <- function(fixed, covariance, effects, variances) {
  shape <- cbind(1, x, x^2)
  value <- t(apply(effects, 1, function(own) shape %*% (fixed + own)))
  spread <- rowSums((shape %*% covariance) * shape)
  se <- t(apply(variances, 1, function(own) sqrt(spread + shape^2 %*% own)))
  list(value = value, se = se)
}

start <- cpu()
if (name == "lme4") {
  suppressPackageStartupMessages(library(lme4))
  fit <- glmer(outcome ~ x + I(x^2) + (1 | rider) + (1 + x + I(x^2) || site), cohort, binomial, nAGQ = 1)
  found <- ranef(fit, condVar = TRUE)$site
  variances <- attr(found, "postVar")
  if (is.list(variances)) variances <- sapply(variances, function(one) as.vector(one))
  if (length(dim(variances)) == 3) variances <- t(apply(variances, 3, diag))
  at <- of_quadratic(fixef(fit), as.matrix(vcov(fit)), as.matrix(found), as.matrix(variances))
  a <- attr(VarCorr(fit)$rider, "stddev")[[1]]
} else if (name == "glmmTMB") {
  suppressPackageStartupMessages(library(glmmTMB))
  fit <- glmmTMB(outcome ~ x + I(x^2) + (1 | rider) + diag(1 + x + I(x^2) | site), cohort, binomial)
  found <- ranef(fit, condVar = TRUE)$cond$site
  variances <- t(apply(attr(found, "condVar"), 3, diag))
  at <- of_quadratic(fixef(fit)$cond, as.matrix(vcov(fit)$cond), as.matrix(found), variances)
  a <- attr(VarCorr(fit)$cond$rider, "stddev")[[1]]
} else {
  suppressPackageStartupMessages(library(mgcv))
  fit <- bam(
    outcome ~ s(x, k = 10) + s(x, site, bs = "fs", k = 5) + s(rider, bs = "re"),
    binomial, cohort, discrete = TRUE, nthreads = 1
  )
  rows <- expand.grid(x = x, site = factor(sites, levels = sites))
  rows$rider <- cohort$rider[1]
  found <- predict(fit, rows, se.fit = TRUE, exclude = "s(rider)", discrete = FALSE)
  by_site <- function(values) matrix(values, length(sites), length(x), byrow = TRUE)
  at <- list(value = by_site(found$fit), se = by_site(found$se.fit))
  smooth <- fit$smooth[[3]]
  a <- sqrt(fit$sig2 / (fit$sp[["s(rider)"]] / smooth$S.scale))
}
spent <- cpu() - start

# Difficulty is minus the log odds without skill, over the sd of skill.
writeLines(c(paste("cpu_seconds", spent), paste("discrimination", format(a, digits = 17))), file.path(out, "scalars.txt"))
writeBin(as.double(t(-at$value / a)), file.path(out, "difficulty.f64"), endian = "little")
writeBin(as.double(t(at$se / a)), file.path(out, "difficulty_se.f64"), endian = "little")
writeBin(as.integer(sites), file.path(out, "sites.i32"), endian = "little")
